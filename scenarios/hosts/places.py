"""Where the daemons of a run are: all on this machine's loopback, or each in a network of its own.

``scenarios.hosts.remote`` has the third way: machines that are reached by ssh.
"""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from scenarios.hosts.tunnels import in_thread, open_tunnel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from scenarios.hosts.links import Link
    from scenarios.hosts.tunnels import Tunnel

Found = TypeVar("Found")


class NoLinks(Exception):
    """Links cannot be changed where there are none (``is_shaped`` tells)."""


class Places(Protocol):
    """What a run needs of its hosts."""

    kind: str
    is_shaped: bool
    """Whether links have delays, can lose and can be cut."""

    def address(self, host: str) -> str:
        """Return where a host can be reached by the others."""

    def spawn(self, host: str, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process on a host; ``options`` are those of ``subprocess.Popen``."""

    def namespace(self, host: str) -> int | None:
        """Return the open file of a host's network namespace; None if it has none of its own."""

    def call(self, host: str, function: Callable[[], Found]) -> Found:
        """Call a function from where a host is: the sockets it makes are there."""

    def change(self, do: str, **what: Any) -> dict[str, int]:
        """Change the links; return what became of packets so far."""


class Loopback:
    """All on one machine, with nothing between them."""

    kind = "loopback"
    is_shaped = False

    def address(self, host: str) -> str:
        """Return where all are."""
        return "127.0.0.1"

    def spawn(self, host: str, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process."""
        return subprocess.Popen(command, **options)

    def namespace(self, host: str) -> int | None:
        """All are in the same."""
        return None

    def call(self, host: str, function: Callable[[], Found]) -> Found:
        """Call a function."""
        return function()

    def change(self, do: str, **what: Any) -> dict[str, int]:
        """There is nothing to change; ``NoLinks``."""
        raise NoLinks(f"{do}: on loopback nothing lies between hosts; run with --hosts namespaces")


class Namespaces:
    """A network namespace for every host, and the carrier between them; ``namespaces`` makes and ends them."""

    kind = "namespaces"
    is_shaped = True

    def __init__(self, tunnels: Mapping[str, Tunnel], carrier: subprocess.Popen[bytes]) -> None:
        self._tunnels, self._carrier = tunnels, carrier

    def address(self, host: str) -> str:
        """Return a host's address in the network between the namespaces."""
        return self._tunnels[host].address

    def spawn(self, host: str, command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a process in a host's namespace."""
        return self.call(host, lambda: subprocess.Popen(command, **options))

    def namespace(self, host: str) -> int | None:
        """Return the open file of a host's namespace."""
        return self._tunnels[host].namespace

    def call(self, host: str, function: Callable[[], Found]) -> Found:
        """Call a function in a thread that is in the host's namespace."""

        def there() -> Found:
            self._tunnels[host].enter()
            return function()

        return in_thread(there)

    def change(self, do: str, **what: Any) -> dict[str, int]:
        """Tell the carrier; it answers with its counts."""
        return self.tell({"do": do, **what})

    def tell(self, line: dict[str, Any]) -> dict[str, int]:
        """Send the carrier a line and return its answer."""
        said, heard = self._carrier.stdin, self._carrier.stdout
        assert said is not None
        assert heard is not None
        said.write(json.dumps(line).encode() + b"\n")
        said.flush()
        answer: dict[str, int] = json.loads(heard.readline())
        return answer


@contextmanager
def namespaces(
    hosts: Sequence[str], common: Link, pairs: Mapping[tuple[str, str], Link], seed: int
) -> Iterator[Namespaces]:
    """Make a namespace for every host, and run the carrier while the block runs; ``NoNamespaces`` if that cannot
    be."""
    tunnels: dict[str, Tunnel] = {}
    carrier = None
    try:
        for number, host in enumerate(hosts):
            tunnels[host] = open_tunnel(host, number)
        carrier = subprocess.Popen(
            [sys.executable, "-m", "scenarios.hosts.carrier"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            pass_fds=[tunnel.device for tunnel in tunnels.values()], start_new_session=True,
        )  # fmt: skip
        places = Namespaces(tunnels, carrier)
        places.tell({
            "do": "shape", "seed": seed, "link": asdict(common), "cuts": [],
            "pairs": [[a, b, asdict(link)] for (a, b), link in pairs.items()],
            "hosts": {host: [tunnel.device, tunnel.address] for host, tunnel in tunnels.items()},
        })  # fmt: skip
        yield places
    finally:
        if carrier is not None:
            for pipe in (carrier.stdin, carrier.stdout):
                if pipe is not None:
                    pipe.close()
            carrier.wait()
        for tunnel in tunnels.values():
            tunnel.close()
