"""A network of daemons on machines that are reached by ssh: the same that ``ProcessNetwork`` does, done there."""

from __future__ import annotations

import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scenarios.hosts.places import Loopback, NoLinks
from scenarios.hosts.ssh import Connection, HostLost, Refused
from scenarios.processes import SOURCE, DaemonFailed, ProcessNetwork

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from scenarios.hosts.hosts_file import Machine

_AT_ONCE: Final = 16
_SIGN_OF_LIFE_S: Final = 30.0
_MOMENT_S: Final = 0.2
_PAUSE_S: Final = 0.02


class OverSsh(Loopback):
    """Machines as they are; what lies between them is not ours to change."""

    kind = "ssh"

    def __init__(self, machines: Mapping[str, Machine]) -> None:
        self._machines = machines

    def address(self, host: str) -> str:
        """Return where a host's daemon listens."""
        return self._machines[host].inside

    def change(self, do: str, **what: Any) -> dict[str, int]:
        """There is nothing that could be changed; ``NoLinks``."""
        raise NoLinks(f"{do}: what lies between machines that are reached by ssh cannot be changed")


class RemoteNetwork(ProcessNetwork):
    """Daemons by name, each on its machine; ``over_ssh`` ends them all. They are asked through their control
    sockets, which ssh has forwarded into ``sockets``."""

    def __init__(self, folder: Path, sockets: Path, connections: Mapping[str, Connection]) -> None:
        super().__init__(folder)
        self._sockets, self._connections = sockets, connections
        self.clocks = {name: connection.clock_s for name, connection in connections.items()}

    def home(self, name: str) -> Path:
        """Return the folder that has a daemon's control socket, and nothing else."""
        return self._sockets / name

    def store(self, name: str) -> Path:
        """Return where a daemon's results are after ``collect``."""
        return self.folder / name / "results.sqlite"

    def begin_source(self, *options: str) -> None:
        """Make the network, the first time, and start its source's process without waiting for it."""
        self._do(SOURCE, "begin_source", options=options)

    def enrol(self, name: str, token: str) -> None:
        """Let a machine join."""
        self._do(name, "enrol", token=token)

    def begin_peer(self, name: str, *options: str) -> None:
        """Start a peer's process without waiting for it."""
        self._do(name, "begin_peer", options=options)

    @property
    def ended(self) -> list[str]:
        """The daemons that have ended by themselves."""
        at = {connection.names[0] for connection in self._connections.values()}
        return sorted(name for first in at for name in self._do(first, "ended")["ended"])

    def await_ready(self, name: str) -> dict[str, Any]:
        """Wait until a daemon listens, a moment at a time: others may ask the same machine for something."""
        end = time.monotonic() + self.ready_s
        while (told := self._do(name, "await_ready", patience_s=_MOMENT_S))["ready"] is None:
            if time.monotonic() > end:
                why = f"{name} was not ready within {self.ready_s:g} s; {told['last_words']}"
                raise DaemonFailed(f"{self._connections[name].machine}: {why}", name)
            time.sleep(_PAUSE_S)
        ready: dict[str, Any] = told["ready"]
        return ready

    def kill(self, name: str) -> None:
        """End a daemon at once."""
        self._do(name, "kill")

    def signal(self, name: str, sig: int) -> None:
        """Send a daemon a signal."""
        self._do(name, "signal", signal=sig)

    def stop(self, name: str) -> None:
        """Ask a daemon to end, and wait for it."""
        self._do(name, "stop")

    def collect(self) -> None:
        """End all daemons, and bring their stores and logs here."""
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            list(pool.map(self._collect, self._connections))
        except BaseException:
            for connection in self._connections.values():
                connection.hang_up()
            raise
        finally:
            pool.shutdown(cancel_futures=True)

    def _collect(self, name: str) -> None:
        self.stop(name)
        self._connections[name].fetch(name, self.folder)

    def _do(self, name: str, do: str, **what: Any) -> dict[str, Any]:
        try:
            return self._connections[name].call(do, name=name, **what)
        except Refused as exc:
            raise DaemonFailed(str(exc), name) from None


@contextmanager
def over_ssh(machines: Mapping[str, Machine], folder: Path) -> Iterator[RemoteNetwork]:
    """Connect with all machines, or with none: ``HostLost`` names the one that cannot be used. Whatever happens
    then, all daemons are ended, and nothing is left there."""
    named: dict[Machine, list[str]] = {}
    for name, machine in machines.items():
        named.setdefault(machine, []).append(name)
    connections: list[Connection] = []
    with tempfile.TemporaryDirectory(prefix="distributary-ssh-") as scratch:
        try:
            for machine, names in named.items():
                connections.append(Connection(machine, names, Path(scratch), folder / f"{names[0]}.ssh.log"))
            for connection in connections:
                connection.greet()
            by_name = {name: connection for connection in connections for name in connection.names}
            with _signs_of_life(connections):
                yield RemoteNetwork(folder, Path(scratch), by_name)
        finally:
            for connection in connections:
                connection.hang_up()
            for connection in connections:
                connection.wait()


@contextmanager
def _signs_of_life(connections: list[Connection]) -> Iterator[None]:
    """Say something to all now and then: an agent that hears nothing for long takes the connection for broken."""
    is_over = threading.Event()

    def speak() -> None:
        while not is_over.wait(_SIGN_OF_LIFE_S):
            for connection in connections:
                with suppress(HostLost, Refused):  # whoever needs it next hears of it
                    connection.call("time")

    threading.Thread(target=speak, daemon=True).start()
    try:
        yield
    finally:
        is_over.set()
