"""The daemons of a run: who is up, who is away or frozen and since which event, and what each has counted.

A daemon counts from 0 at each start, so it is asked for its counts before it is ended, and they are added up.
Every question has a time after which it is given up: a daemon may be halted at any moment.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from scenarios.scenario_file import SOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from scenarios.processes import ProcessNetwork

LOOK_S: Final = 20.0
"""How long a daemon may take to say how it stands."""
_COUNTS_S: Final = 5.0
"""The same while a fault waits to happen."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a host has counted since its daemon was started first."""

    bytes_sent: int = 0
    failovers: int = 0

    def __add__(self, other: Counted) -> Counted:
        return Counted(self.bytes_sent + other.bytes_sent, self.failovers + other.failovers)


class Daemons:
    """See the module's text. The number of an event says who may undo it: ``None`` as the one that undoes is
    anybody."""

    def __init__(self, network: ProcessNetwork, hosts: Iterable[str]) -> None:
        self.network = network
        self.hosts = list(hosts)
        """Those that are members, the source aside."""
        self._away: dict[str, int] = {}
        self._frozen: dict[str, int] = {}
        self._were_largest: set[str] = set()
        self._before: dict[str, Counted] = {}
        self._since: dict[str, Counted] = {}

    @property
    def up(self) -> list[str]:
        """The hosts that can be asked something."""
        return [name for name in self.hosts if not self.trouble(name)]

    def trouble(self, name: str) -> str:
        """Say why a daemon cannot be asked; nothing if it can."""
        if name != SOURCE and name not in self.hosts:
            return "no member"
        return "away" if name in self._away else "frozen" if name in self._frozen else ""

    def one(self, name: str, do: str, /, patience_s: float = LOOK_S, **fields: Any) -> dict[str, Any]:
        """Ask something that has one answer."""
        return self.network.one(name, do, patience_s=patience_s, **fields)

    def many(self, name: str, do: str, /, patience_s: float = LOOK_S, **fields: Any) -> list[dict[str, Any]]:
        """Ask something that has many answers."""
        return self.network.many(name, do, patience_s=patience_s, **fields)

    # What is done to them; each says why it could not be.

    def end(self, name: str, event: int, *, at_once: bool) -> str:
        """Kill or stop a daemon; one that is frozen cannot be stopped."""
        if (trouble := self.trouble(name)) and not (trouble == "frozen" and at_once):
            return f"{name} is {trouble}"
        self.count(name)
        (self.network.kill if at_once else self.network.stop)(name)
        self._frozen.pop(name, None)
        self._away[name] = event
        self._before[name] = self._before.get(name, Counted()) + self._since.pop(name, Counted())
        return ""

    def start(self, name: str, undone: int | None = None) -> str:
        """Start a daemon again."""
        if name not in self._away or undone not in (None, self._away[name]):
            return f"{name} is {self.trouble(name) or 'up'}"
        del self._away[name]
        if name == SOURCE:
            self.network.start_source()
        else:
            self.network.start_peer(name)
        return ""

    def freeze(self, name: str, event: int) -> str:
        """Halt a daemon."""
        if trouble := self.trouble(name):
            return f"{name} is {trouble}"
        self.count(name)
        self.network.signal(name, signal.SIGSTOP)
        self._frozen[name] = event
        return ""

    def thaw(self, name: str, undone: int | None = None) -> str:
        """Let a daemon go on."""
        if name not in self._frozen or undone not in (None, self._frozen[name]):
            return f"{name} is {self.trouble(name) or 'up'}"
        del self._frozen[name]
        self.network.signal(name, signal.SIGCONT)
        return ""

    def let_go(self, name: str) -> str:
        """Take a host for no member any more: nobody else does anything with it while it leaves."""
        if trouble := self.trouble(name):
            return f"{name} is {trouble}"
        self.hosts.remove(name)
        return ""

    def bring_back(self) -> None:
        """Thaw who is frozen, and start who is away."""
        for name in sorted(self._frozen):
            self.thaw(name)
        for name in sorted(self._away, key=lambda name: (name != SOURCE, name)):
            self.start(name)

    # What they say.

    def largest_feeder(self) -> str | None:
        """Return the host that feeds most subscriptions of other machines, one that was not returned before if
        there is another; None if none is up."""
        feeds: dict[str, tuple[bool, int, int]] = {}
        for name in self.up:
            try:
                standing = self.many(name, "subscriptions", patience_s=_COUNTS_S)
            except CommandError:
                continue  # it is overloaded, or has just ended
            given = sum(one["crossing"] for one in standing), sum(one["feeds"] for one in standing)
            feeds[name] = name not in self._were_largest, *given
        if not feeds:
            return None
        found = max(feeds, key=lambda name: feeds[name])
        self._were_largest.add(found)
        return found

    def count(self, name: str, *, is_leaving: bool = False) -> None:
        """Ask a daemon for what it has counted since its start; one that is silent told it before, or never."""
        if self.trouble(name) and not is_leaving:
            return
        try:
            told = self.one(name, "status", patience_s=_COUNTS_S, lag=False)
        except CommandError:
            return
        self.heard(name, told)

    def heard(self, name: str, told: dict[str, Any]) -> None:
        """Take in how a daemon stands."""
        self._since[name] = Counted(told["bytes_sent"], told.get("failovers", 0))

    def counted(self) -> dict[str, Counted]:
        """Return what each has counted over all its starts, as far as it has told."""
        known = sorted(self._before.keys() | self._since.keys())
        return {name: self._before.get(name, Counted()) + self._since.get(name, Counted()) for name in known}
