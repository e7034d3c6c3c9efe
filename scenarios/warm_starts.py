"""Daemons that start at once: one process loads everything, and forks whenever a daemon is wanted.

A daemon started so is a process like any other, with its own files and sockets, and can be killed like any other;
what it saves is the two seconds that imports and compiled code take. Run as a module it is the process that forks.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol

from scenarios.hosts.tunnels import enter_namespace

if TYPE_CHECKING:
    from pathlib import Path
    from typing import IO

_MOST_BYTES: Final = 1 << 16
_STOP_S: Final = 10.0
_HANDLES: Final = 3
"""Standard output, standard error, and what tells that it lives; then a namespace, or nothing."""
_LOADED: Final = (
    "peer.cli", "peer.commands.peer", "peer.commands.source", "peer.daemon.controls", "peer.daemon.running",
    "peer.daemon.peer_daemon", "peer.daemon.source_daemon",
)  # fmt: skip


class Process(Protocol):
    """What is asked of a daemon's process, however it was started."""

    stdout: IO[bytes] | None

    def send_signal(self, sig: int) -> None:
        """Send it a signal."""

    def poll(self) -> int | None:
        """Return None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; ``subprocess.TimeoutExpired`` if it has not by then."""


class Forked:
    """A process of ``WarmStarts``. It holds one end of a pipe and says nothing there: when it has ended, the
    other end tells."""

    def __init__(self, pid: int, output: int, life: int) -> None:
        self.pid = pid
        self.stdout: IO[bytes] | None = os.fdopen(output, "rb", buffering=0)
        self._life = os.fdopen(life, "rb", buffering=0)

    def send_signal(self, sig: int) -> None:
        """Send it a signal; its number is not given to another process before ``WarmStarts`` has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, sig)

    def poll(self) -> int | None:
        """Return None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; how it ended is not known."""
        if not self._life.closed:
            if not select.select([self._life], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self._life.close()
        return 0


class WarmStarts:
    """Starts daemons at once; a context manager whose end is the end of all of them."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._has_started = False
        self._ours, theirs = socket.socketpair()
        with theirs:
            self._parent = subprocess.Popen(
                [sys.executable, "-m", "scenarios.warm_starts", str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                env=os.environ | {"PYTHONUNBUFFERED": "1"},
                start_new_session=True,
            )

    def spawn(
        self, command: list[str], log: Path, namespace: int | None = None, *, patience_s: float | None = None
    ) -> Process:
        """Run a command of ``distributary``, in a network namespace (an open file) if one is given; it writes its
        log to the end of a file. ``patience_s``: how long the process that forks may take to load (for ever);
        ``TimeoutError`` if it takes longer, and nothing can be started any more then."""
        self._has_started = True
        (output, to_output), (life, to_life) = os.pipe(), os.pipe()
        with self._turn, open(log, "ab") as errors:
            try:
                handles = [to_output, errors.fileno(), to_life]
                handles += [] if namespace is None else [namespace]
                socket.send_fds(self._ours, [json.dumps(command).encode()], handles)
            finally:
                os.close(to_output)
                os.close(to_life)
            told = self._answer(patience_s)
        if not told:
            raise BrokenPipeError("the process that starts daemons has ended")
        return Forked(int(told), output, life)

    def _answer(self, patience_s: float | None) -> bytes:
        if not select.select([self._ours], [], [], patience_s)[0]:
            self._ours.close()  # an answer that comes later would be taken for the next one
            raise TimeoutError(f"the process that starts daemons has not answered for {patience_s:g} s")
        return self._ours.recv(_MOST_BYTES)

    def __enter__(self) -> WarmStarts:
        return self

    def __exit__(self, *_: object) -> None:
        self._ours.close()
        if not self._has_started:
            self._parent.kill()  # it may be loading still, for nobody
        try:
            self._parent.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._parent.kill()
            self._parent.wait()


def _serve(channel: socket.socket) -> None:
    """Fork for every request until the other end is closed; then end everybody. Nobody is waited for before: so
    the number of a process that has ended stays its own."""
    started: list[int] = []
    while True:
        request, handles, _, _ = socket.recv_fds(channel, _MOST_BYTES, _HANDLES + 1)
        if not request:
            break
        pid = os.fork()
        if pid == 0:
            channel.close()
            _become(json.loads(request), *handles)
        for handle in handles:
            os.close(handle)
        started.append(pid)
        channel.send(str(pid).encode())
    for pid in started:
        os.kill(pid, signal.SIGKILL)
        ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if ended not in (0, -signal.SIGKILL):
            sys.stderr.write(f"the daemon with process number {pid} ended with {ended}\n")


def _become(command: list[str], *handles: int) -> None:
    """Be the daemon that was asked for."""
    from peer.cli import main

    status = 1
    try:
        faulthandler.enable()
        for namespace in handles[_HANDLES:]:
            enter_namespace(namespace)
        for place, handle in enumerate(handles[:_HANDLES], start=1):
            os.dup2(handle, place)
        os.closerange(_HANDLES + 1, 64)
        status = main(command)
    except BaseException:  # nobody else would tell
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _main() -> None:
    from peer.warm import warm_source

    for name in _LOADED:
        importlib.import_module(name)
    warm_source()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))


if __name__ == "__main__":
    _main()
