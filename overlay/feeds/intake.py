"""All inputs of one subscription, joined by document.

A document's results can be computed when every input covers it: from what each has for it, if every one has
something; else there are none. What an input could not process, or has lost, is so for the subscription too.
Several inputs may run ahead of each other, each at most by its own credit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from overlay.feeds.items import Item, Kind


class Ready(NamedTuple):
    """What can be computed: ``documents`` with what every input has for them, in order, and the marks of a single
    input's; ``troubles``: what is
    wrong or missing. Then everything is known up to ``upto``. ``used``: bytes of each input that are done with."""

    documents: list[tuple[int, str, tuple[bytes, ...], bytes]]
    troubles: list[Item]
    upto: int
    used: list[int]


@dataclass(slots=True)
class _Input:
    covered: int
    items: dict[int, Item] = field(default_factory=dict)


class Intake:
    """The inputs of a subscription; ``frontier``: what was taken out so far.

    >>> intake = Intake(inputs=2, frontier=3)
    >>> intake.take(0, Item(5, Kind.RESULTS, b"a", name="d"), covered=6)
    >>> intake.take(1, Item(5, Kind.RESULTS, b"b"), covered=5)
    >>> intake.ready()
    Ready(documents=[(5, 'd', (b'a', b'b'), b'')], troubles=[], upto=5, used=[1, 1])
    >>> intake.frontier
    5
    """

    def __init__(self, inputs: int, frontier: int) -> None:
        if inputs < 1:
            raise ValueError("a subscription without inputs learns nothing")
        self._inputs = [_Input(frontier) for _ in range(inputs)]
        self.frontier = frontier

    @property
    def covered(self) -> int:
        """Up to where every input is known."""
        if len(self._inputs) == 1:
            return self._inputs[0].covered
        return min([one.covered for one in self._inputs])

    def take(self, number: int, item: Item | None, covered: int) -> None:
        """Take an item of one input in, and up to where that input is covered now."""
        one = self._inputs[number]
        if item is not None:
            one.items[item.number] = item
        one.covered = max(one.covered, covered)

    def skip_to(self, upto: int) -> None:
        """Everything up to a document is known another way, and nothing of it has been taken in."""
        self.frontier = upto
        for one in self._inputs:
            one.covered = upto

    def forget(self, upto: int) -> list[int]:
        """Drop what is known elsewhere already, up to a document; return how many bytes of each input that is."""
        self.frontier = max(self.frontier, upto)
        dropped = []
        for one in self._inputs:
            known = [one.items.pop(n) for n in [n for n in one.items if n <= upto]]
            dropped.append(sum(len(item.data) for item in known))
        return dropped

    def ready(self, *, frontier: int | None = None) -> Ready:
        """Take out what every input covers; ``frontier``: what is known elsewhere already is left out."""
        if frontier is not None and frontier > self.frontier:
            self.frontier = frontier
        upto = max(self.covered, self.frontier)
        if all(item.kind is Kind.RESULTS for one in self._inputs for item in one.items.values()):
            return self._plain(upto)
        used, taken = [], []
        for one in self._inputs:
            out = [one.items.pop(n) for n in sorted(n for n in one.items if n <= upto)]
            used.append(sum(len(item.data) for item in out))
            # A gap may reach further than all inputs do: what it says of the documents up to there counts now.
            out += [
                Item(upto, Kind.GAP, after=item.after)
                for item in one.items.values()
                if item.kind is Kind.GAP and item.after < upto
            ]
            taken.append({item.number: item for item in out if item.number > self.frontier})
        troubles = _troubles(taken, self.frontier)
        lost = {item.number for item in troubles if item.kind is Kind.ERROR}
        gaps = [(item.begin, item.number) for item in troubles if item.kind is Kind.GAP]
        documents = [
            (n, taken[0][n].name, tuple(items[n].data for items in taken), _marks(taken, n))
            for n in sorted(set(taken[0]).intersection(*taken[1:]))
            if n not in lost and not any(a < n <= b for a, b in gaps)
        ]
        self.frontier = upto
        return Ready(documents, troubles, upto, used)

    def _plain(self, upto: int) -> Ready:
        """Take out what every input covers, where nothing is wrong or missing: nearly always."""
        taken = [{n: one.items.pop(n) for n in sorted(n for n in one.items if n <= upto)} for one in self._inputs]
        documents = [
            (n, item.name, tuple(items[n].data for items in taken), _marks(taken, n))
            for n, item in taken[0].items()
            if n > self.frontier and all(n in items for items in taken)
        ]
        self.frontier = upto
        return Ready(documents, [], upto, [sum(len(item.data) for item in items.values()) for items in taken])


def _marks(taken: list[dict[int, Item]], number: int) -> bytes:
    return taken[0][number].marks if len(taken) == 1 else b""


def _troubles(taken: list[dict[int, Item]], frontier: int) -> list[Item]:
    """List what some input could not process or has lost: gaps united, errors outside of gaps, in order."""
    gaps: list[tuple[int, int]] = []
    everything = [item for items in taken for item in items.values()]
    for item in sorted((i for i in everything if i.kind is Kind.GAP), key=lambda i: i.begin):
        begin = max(item.begin, frontier)
        if gaps and begin <= gaps[-1][1]:
            gaps[-1] = (gaps[-1][0], max(gaps[-1][1], item.number))
        else:
            gaps.append((begin, item.number))
    wrong = {item.number: item for item in reversed(everything) if item.kind is Kind.ERROR}
    found = [Item(b, Kind.GAP, after=a) for a, b in gaps]
    found += [item for n, item in wrong.items() if not any(a < n <= b for a, b in gaps)]
    return sorted(found, key=lambda item: item.number)
