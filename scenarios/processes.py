"""A network of daemons as processes of this machine, on loopback: started, asked, killed, restarted.

Homes are folders under one; daemons are talked to as the command line does it, through their control sockets.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from peer.home import Conversation, ask, ask_one
from scenarios.hosts.lines import Lines, Silence
from scenarios.hosts.places import Loopback
from scenarios.warm_starts import WarmStarts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from scenarios.hosts.places import Places
    from scenarios.warm_starts import Process

SOURCE: Final = "source"
READY_S: Final = 300.0
"""How long a daemon may take to listen: after an installation the first one compiles, and machines may be slow."""
_STOP_S: Final = 10.0
_LONGEST: Final = 400


class DaemonFailed(Exception):
    """``daemon`` did not start, or not in time; the message says so, and what it wrote last."""

    def __init__(self, message: str, daemon: str) -> None:
        super().__init__(message)
        self.daemon = daemon


class ProcessNetwork:
    """Daemons by name; ``running`` ends them all. With ``warm`` they start at once. ``ready_s``: how long each may
    take to listen."""

    def __init__(
        self, folder: Path, warm: WarmStarts | None = None, places: Places | None = None, *,
        ready_s: float = READY_S,
    ) -> None:  # fmt: skip
        self.folder, self.ready_s = folder, ready_s
        self._warm, self._places = warm, places or Loopback()
        self._processes: dict[str, Process] = {}
        self._ports = ("0", "0")
        self._options: dict[str, tuple[str, ...]] = {}
        self.clocks: dict[str, float] = {}
        """How far the clocks of daemons are ahead of ours, where they may differ."""

    def home(self, name: str) -> Path:
        """Return a daemon's folder."""
        return self.folder / name

    def store(self, name: str) -> Path:
        """Return where a daemon's results are, after ``collect``."""
        return self.home(name) / "results.sqlite"

    def start_source(self, *options: str) -> None:
        """Make the network, the first time, and run its source."""
        self.begin_source(*options)
        self.await_ready(SOURCE)

    def begin_source(self, *options: str) -> None:
        """Make the network, the first time, and start its source's process without waiting for it; it listens
        where it did before."""
        from overlay.identity import create_network

        if not self.home(SOURCE).exists():
            create_network(self.home(SOURCE), "demo", datetime.now(UTC))
        self._options[SOURCE] = options or self._options.get(SOURCE, ())
        ports = "--port", self._ports[0], "--enrolment-port", self._ports[1]
        self._processes[SOURCE] = self._spawn(
            SOURCE, "source", "run", *ports, *self._where(SOURCE), *self._options[SOURCE]
        )

    def join(self, name: str, *roles: str) -> None:
        """Invite a machine and let it join, from where it is."""
        self.enrol(name, self.one(SOURCE, "invite", site=name, roles=roles or ["subscriber"], hours=1)["token"])

    def enrol(self, name: str, token: str) -> None:
        """Let a machine join, from where it is."""
        from peer.daemon.enrolling import join

        self._places.call(name, lambda: join(self.home(name), token))

    def begin_peer(self, name: str, *options: str) -> None:
        """Start a peer's process without waiting for it."""
        self._options[name] = options or self._options.get(name, ())
        self._processes[name] = self._spawn(name, "peer", "run", *self._where(name), *self._options[name])

    @property
    def running(self) -> list[str]:
        """The daemons that were started and not ended by us."""
        return sorted(self._processes)

    @property
    def ended(self) -> list[str]:
        """Those of them that have ended by themselves."""
        return [name for name in self.running if self._processes[name].poll() is not None]

    def has_spoken(self, name: str, patience_s: float) -> bool:
        """Wait until a daemon that was started says that it listens, or ends, for so long; say whether it did."""
        output = self._processes[name].stdout
        return output is None or bool(select.select([output], [], [], patience_s)[0])

    def await_ready(self, name: str) -> dict[str, Any]:
        """Wait until a daemon listens; ``DaemonFailed`` if it has ended, or does not in time."""
        process = self._processes[name]
        try:
            line = Lines(process.stdout.fileno()).next(self.ready_s) if process.stdout is not None else b""
        except Silence:
            why = f"{name} was not ready within {self.ready_s:g} s; {self.last_words(name)}"
            raise DaemonFailed(why, name) from None
        if not line:
            raise DaemonFailed(f"{name} did not start; {self.last_words(name)}", name)
        found: dict[str, Any] = json.loads(line)
        if name == SOURCE:
            self._ports = str(found["port"]), str(found["enrolment_port"])
        return found

    def last_words(self, name: str) -> str:
        """Return the last line of a daemon's log, which may be gone soon."""
        log = self.folder / f"{name}.log"
        lines = log.read_text("utf-8", "replace").splitlines() if log.exists() else []
        return next((line.strip() for line in reversed(lines) if line.strip()), "its log is empty")[-_LONGEST:]

    def start_peer(self, name: str) -> dict[str, Any]:
        """Start a peer and wait until it listens."""
        self.begin_peer(name)
        return self.await_ready(name)

    def start_planner(self, name: str, *options: str) -> dict[str, Any]:
        """Start the planner service of a daemon's folder; it goes by the folder's name and ``-planner``."""
        self._processes[f"{name}-planner"] = self._spawn(name, "planner", "run", *options)
        return self.await_ready(f"{name}-planner")

    def kill(self, name: str) -> None:
        """End a daemon at once, as a power failure would; one that is not there stays so."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGKILL)
        _ended(process)

    def signal(self, name: str, sig: int) -> None:
        """Send a daemon a signal; it stays in the network."""
        self._processes[name].send_signal(sig)

    def stop(self, name: str) -> None:
        """Ask a daemon to end, and wait for it; one that is not there stays so."""
        process = self._processes.pop(name, None)
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
        _ended(process)

    def collect(self) -> None:
        """End all daemons; their stores are where ``store`` says then."""
        processes, self._processes = self._processes, {}
        for process in processes.values():
            process.send_signal(signal.SIGCONT)  # one that is halted would not hear the rest
            process.send_signal(signal.SIGTERM)
        end = time.monotonic() + _STOP_S
        for process in processes.values():
            try:
                process.wait(max(0.0, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            _ended(process)

    def one(self, daemon: str, do: str, /, *, patience_s: float | None = None, **fields: Any) -> dict[str, Any]:
        """Ask a daemon something that has one answer; ``patience_s``: how long it may be silent."""
        return ask_one(self.home(daemon), do, patience_s=patience_s, **fields)

    def many(
        self, daemon: str, do: str, /, *, patience_s: float | None = None, **fields: Any
    ) -> list[dict[str, Any]]:
        """Ask a daemon something that has many answers; ``patience_s``: how long it may be silent."""
        return list(ask(self.home(daemon), do, patience_s=patience_s, **fields))

    def publish(
        self, name: str, body: bytes, through: Conversation | None = None, *, patience_s: float | None = None
    ) -> int:
        """Publish a document at the source and return its number; ``through``: a conversation with the source."""
        fields = {"name": name, "key": name, "body": base64.b64encode(body).decode()}
        if through is not None:
            return int(through.one("publish", **fields)["number"])
        return int(self.one(SOURCE, "publish", patience_s=patience_s, **fields)["number"])

    def _where(self, name: str) -> tuple[str, str]:
        return "--host", self._places.address(name)

    def _spawn(self, name: str, *command: str) -> Process:
        words, log_path = [*command, "--home", str(self.home(name)), "--json"], self.folder / f"{name}.log"
        if self._warm is not None:
            try:
                return self._warm.spawn(words, log_path, self._places.namespace(name), patience_s=self.ready_s)
            except OSError as exc:
                raise DaemonFailed(f"{name} could not be started: {exc}", name) from exc
        with open(log_path, "ab") as log:
            return self._places.spawn(
                name, [sys.executable, "-m", "peer", *words],
                stdout=subprocess.PIPE, stderr=log, env=os.environ | {"PYTHONUNBUFFERED": "1"},
            )  # fmt: skip


def _ended(process: Process) -> None:
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextmanager
def running(
    folder: Path, *, is_warm: bool = False, places: Places | None = None, ready_s: float = READY_S
) -> Iterator[ProcessNetwork]:
    """Run a network in a folder; whatever happens, all its daemons are ended. ``is_warm``: they start at once, by
    forking one process that has loaded everything. ``places``: where they are, if not all on loopback."""
    with WarmStarts() if is_warm else nullcontext() as warm:
        network = ProcessNetwork(folder, warm, places, ready_s=ready_s)
        try:
            yield network
        finally:
            network.collect()
