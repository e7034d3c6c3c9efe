"""Faults of links that hold at the same time: what lies between hosts follows from all that are under way.

Nothing is undone by hand: when one ends, links are worked out anew from those that are left. Of two that change
the same thing the later one holds; what is cut by several stays cut until all of them have ended.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

from scenarios.scenario_file import SOURCE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from scenarios.hosts.links import Link


@dataclass(slots=True)
class LinkFaults:
    """``everybody``: all hosts. ``common``, ``pairs``: what lies between them without any fault."""

    everybody: Sequence[str]
    common: Link
    pairs: Mapping[tuple[str, str], Link]
    _changes: dict[int, dict[str, float]] = field(default_factory=dict)
    _cuts: dict[int, list[str]] = field(default_factory=dict)

    def change(self, number: int, what: dict[str, float]) -> None:
        """Begin to change something about all links; ``number`` names the fault."""
        self._changes[number] = what

    def cut(self, number: int, hosts: list[str]) -> None:
        """Begin to let nothing pass between some hosts and all others."""
        self._cuts[number] = hosts

    def end(self, number: int) -> bool:
        """End a fault; say whether it was still there."""
        return self._changes.pop(number, None) is not None or self._cuts.pop(number, None) is not None

    def heal(self) -> None:
        """End all cuts."""
        self._cuts.clear()

    @property
    def cut_off(self) -> set[str]:
        """The hosts that nothing of the source reaches now.

        >>> from scenarios.hosts.links import Link
        >>> faults = LinkFaults(["source", "a", "b", "c"], Link(), {})
        >>> faults.cut(1, ["a"])
        >>> faults.cut(2, ["source", "c"])
        >>> sorted(faults.cut_off)
        ['a', 'b']
        """
        found: set[str] = set()
        for some in list(self._cuts.values()):  # another thread may change them
            found |= set(self.everybody).difference(some) if SOURCE in some else set(some)
        return found

    def shape(self) -> dict[str, Any]:
        """Return what lies between hosts now, as the carrier is told it.

        >>> from scenarios.hosts.links import Link
        >>> faults = LinkFaults(["a", "b", "c"], Link(rtt_ms=10), {})
        >>> faults.change(1, {"loss": 0.1})
        >>> faults.cut(2, ["a"])
        >>> faults.shape()["link"]["loss"], faults.shape()["cuts"]
        (0.1, [[['a'], ['b', 'c']]])
        >>> faults.end(1), faults.shape()["link"]["loss"]
        (True, 0.0)
        """
        changed: dict[str, float] = {}
        for number in self._changes:  # in the order in which they began
            changed |= self._changes[number]
        return {
            "link": asdict(replace(self.common, **changed)),
            "pairs": [[a, b, asdict(replace(link, **changed))] for (a, b), link in self.pairs.items()],
            "cuts": [[some, [one for one in self.everybody if one not in some]] for some in self._cuts.values()],
        }
