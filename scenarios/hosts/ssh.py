"""A connection with a machine: one process of OpenSSH's client, the agent at its other end, and the control
sockets of its daemons forwarded through it.

The process has no terminal and asks nothing; it is in a session of its own, so that Ctrl-C reaches the run alone,
which then closes the connection. With its input everything at the other end ends too.
"""

from __future__ import annotations

import json
import secrets
import shlex
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from scenarios.hosts.lines import Lines, Silence

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from scenarios.hosts.hosts_file import Machine

_CONNECT_S: Final = 20
_HELLO_S: Final = 90.0
"""Until the agent speaks: it has to load first, on a machine that may be slow."""
_ANSWER_S: Final = 300.0
_END_S: Final = 15.0
_ASKED: Final = 5
_MOST_NOISE: Final = 200
"""Lines that a login may print before the agent speaks."""
_OPTIONS: Final = {
    "BatchMode": "yes", "ConnectTimeout": str(_CONNECT_S), "ServerAliveInterval": "10", "ServerAliveCountMax": "3",
    "ControlMaster": "no", "ControlPath": "none", "ExitOnForwardFailure": "yes", "StreamLocalBindUnlink": "yes",
    "ForwardAgent": "no", "ForwardX11": "no", "LogLevel": "ERROR",
}  # fmt: skip


class HostLost(Exception):
    """A machine cannot be reached, or used, or is gone; the message names it and says why."""


class Refused(Exception):
    """A machine could not do what it was told; the message is what it says."""


class Connection:
    """``names``: whose daemons are on the machine; ``sockets``: the folder in which each has one for its control
    socket; ``log``: where ssh writes. Answers come in order, so one asks at a time."""

    def __init__(self, machine: Machine, names: Sequence[str], sockets: Path, log: Path) -> None:
        self.machine, self.names = machine, names
        self.clock_s = 0.0
        """How far its clock is ahead of ours."""
        self._log = log
        self._turn = threading.Lock()
        ssh = shutil.which("ssh")
        if ssh is None:
            raise HostLost("ssh is not there; install OpenSSH's client")
        folder = f"{machine.folder}/distributary-{secrets.token_hex(4)}"
        agent = [*machine.command, "scenario", "agent", "--folder", folder, "--address", machine.inside]
        command = [ssh, "-T", *machine.options]
        for option in _OPTIONS.items():
            command += ["-o", "=".join(option)]
        for name in names:
            (sockets / name).mkdir(exist_ok=True)
            command += ["-L", f"{sockets / name / 'control.sock'}:{folder}/{name}/control.sock"]
        with open(log, "ab") as errors:
            self._process = subprocess.Popen(
                [*command, "--", machine.address, f"exec {shlex.join(agent)}"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        self._lines = Lines(self._process.stdout.fileno())

    def greet(self) -> None:
        """Wait until the agent speaks, and compare the clocks; ``HostLost`` says why it does not."""
        end = time.monotonic() + _HELLO_S
        for _ in range(_MOST_NOISE):
            line = self._heard(max(0.0, end - time.monotonic()))
            if line.startswith((b'{"agent"', b'{"failed"')):
                break
        else:
            raise HostLost(f"{self.machine}: prints and prints at login, so that it cannot be understood")
        told = json.loads(line)
        if "failed" in told:
            raise HostLost(f"{self.machine}: {told['failed']}")
        if told["agent"] != version("distributary"):
            raise HostLost(
                f"{self.machine}: has distributary {told['agent']}, and this is {version('distributary')}"
            )
        trips = []
        for _ in range(_ASKED):
            before = time.time()
            there, after = self.call("time")["time"], time.time()
            trips.append((after - before, there - (before + after) / 2))
        self.clock_s = min(trips)[1]

    def call(self, do: str, **what: Any) -> dict[str, Any]:
        """Let the agent do something, and return its answer; ``Refused`` if it cannot, ``HostLost``."""
        with self._turn:
            self._tell({"do": do, **what})
            told: dict[str, Any] = json.loads(self._heard(_ANSWER_S))
        if "failed" in told:
            raise Refused(f"{self.machine}: {told['failed']}")
        return told

    def fetch(self, name: str, folder: Path) -> None:
        """Bring a daemon's store and log into a folder."""
        with self._turn:
            self._tell({"do": "fetch", "name": name})
            while "file" in (told := json.loads(self._heard(_ANSWER_S))):
                path = folder / told["file"]
                if not path.resolve().is_relative_to(folder.resolve()):
                    raise HostLost(f"{self.machine}: sends {told['file']}, which was not asked for")
                path.parent.mkdir(exist_ok=True)
                with open(path, "wb") as file:
                    rest = told["bytes"]
                    while rest:
                        data = self._lines.some(rest, _ANSWER_S)
                        if not data:
                            raise HostLost(self._why())
                        file.write(data)
                        rest -= len(data)
        if "failed" in told:
            raise Refused(f"{self.machine}: {told['failed']}")

    def hang_up(self) -> None:
        """Close its input, whereupon everything at the other end ends."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()

    def wait(self) -> None:
        """Wait for its end, after ``hang_up``; for so long."""
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def _tell(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):  # broken, or closed by us
            raise HostLost(self._why()) from None

    def _heard(self, patience_s: float) -> bytes:
        try:
            line = self._lines.next(patience_s)
        except Silence as exc:
            raise HostLost(f"{self.machine}: {exc}") from None
        if not line:
            raise HostLost(self._why())
        return line

    def _why(self) -> str:
        """Say why it has ended: ssh's last words, and what to do about them."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        said = [line for line in self._log.read_text("utf-8", "replace").splitlines() if line.strip()]
        why = said[-1].strip() if said else f"ssh has ended with {self._process.returncode} and says nothing"
        if self._process.returncode in (126, 127):
            why += f"; install distributary there, or say command= in {self.machine.where}"
        return f"{self.machine}: {why}"
