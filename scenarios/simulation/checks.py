"""What must hold of a simulated network, at every moment and at the end.

At every moment: no circle among the feeds in use (I2), no subscription feeds more than it may (I3), no
configuration is replaced by an older one (I5), and what waits in memory is bounded (I6). At the end: everybody has
had exactly its own (I1), whatever crashed (I4) and was dropped since, and what was acknowledged is there. What a
machine must not say or do is noticed by the machines (``peers``, ``watched``, ``source``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from overlay.feeds.items import Kind
from peer.hosting.results import decode_whole
from peer.storage.log_values import Missing
from scenarios.simulation.verdicts import Check, Violation
from xmlmatch import Document, Pattern, match

if TYPE_CHECKING:
    from collections.abc import Iterator

    from overlay.feeds.items import Item
    from peer.hosting.configuration import Version
    from scenarios.simulation.peers import PeerMachine
    from scenarios.simulation.world import Asked, World

_MOST_FRAMES: Final = 5_000
_MOST_RECENT: Final = 8 << 20
_EVERYTHING: Final = 1 << 40


class Watcher:
    """Looks at a world while it runs; ``wrong`` lists what must not be."""

    def __init__(self) -> None:
        self.wrong: list[Violation] = []
        self._versions: dict[tuple[str, str, int], Version] = {}

    def say(self, check: Check, what: str) -> None:
        """Something must not be."""
        self.wrong.append(Violation(check, what))

    def look(self, world: World) -> None:
        """Check what must hold at every moment."""
        feeds: dict[str, tuple[str, ...]] = {}
        for peer in world.peers.values():
            if peer.host is None:
                continue
            if world.wires.waiting(peer.name) > _MOST_FRAMES:
                self.say(Check.MEMORY, f"{peer.name} has {world.wires.waiting(peer.name):,} frames waiting")
            for name, hosted in peer.host.subscriptions.items():
                outlet = hosted.outlet
                if len(outlet.crossing) > outlet.most:
                    self.say(Check.LIMIT, f"{name} feeds {len(outlet.crossing)}; {outlet.most} are the limit")
                if outlet.history.recent_bytes > _MOST_RECENT:
                    self.say(Check.MEMORY, f"{name} keeps {outlet.history.recent_bytes:,} bytes in memory")
                self._version(peer, name, hosted.configuration.version)
                self._credit(world, peer, name)
                current = hosted.feeding.current
                feeds[name] = () if current is None else tuple(one.subscription for one in current.inputs)
        circle = find_circle(feeds)
        if circle:
            self.say(Check.CIRCLE, f"{' feeds '.join(circle)}")

    def _credit(self, world: World, peer: PeerMachine, name: str) -> None:
        """No sender believes that it was granted more than its receiver has granted it."""
        assert peer.host is not None
        for (site, number), feed in peer.host.subscriptions[name].outlet.feeds.items():
            receiver = world.peers[site].host if site in world.peers else None
            fed = None if receiver is None else receiver._feeds.get(number)
            is_joined = world.wires.is_connected(peer.name, site) and world.wires.is_connected(site, peer.name)
            if fed is not None and is_joined and feed.serving.granted > fed[1].feeds[fed[2]]._granted:
                self.say(
                    Check.CREDIT,
                    f"{name} may send {feed.serving.granted} to feed {number} of {site}, it believes",
                )

    def _version(self, peer: PeerMachine, name: str, version: Version) -> None:
        key = peer.name, name, peer.life
        before = self._versions.get(key)
        if before is not None and version < before:
            self.say(Check.VERSION, f"{name} at {peer.name} went from {before} back to {version}")
        self._versions[key] = version


def find_circle(feeds: dict[str, tuple[str, ...]]) -> list[str]:
    """Return subscriptions that feed each other in a circle; nothing if none do.

    >>> find_circle({"a": ("b",), "b": ("c", "d"), "c": ("a",), "d": ()})
    ['a', 'b', 'c', 'a']
    """
    done: set[str] = set()
    for first in feeds:
        path: list[str] = []
        stack: list[tuple[str, Iterator[str]]] = [(first, iter(feeds.get(first, ())))]
        path.append(first)
        while stack:
            _, inputs = stack[-1]
            following = next((one for one in inputs if one not in done), None)
            if following is None:
                stack.pop()
                done.add(path.pop())
            elif following in path:
                return [*path[path.index(following) :], following]
            else:
                path.append(following)
                stack.append((following, iter(feeds.get(following, ()))))
    return []


def final_wrong(world: World) -> list[Violation]:
    """Say what is wrong at the end, and note who has gaps."""
    log = world.source.log
    bodies = {number: world.bodies[key] for key, number in world.acknowledged.items()}
    wrong = [
        Violation(Check.COMPLETE, f"{key} was never acknowledged")
        for key in world.bodies
        if key not in world.acknowledged
    ]
    wrong += [
        Violation(Check.KEPT, f"the log has {found}, which was not acknowledged so")
        for found in log.documents(log.lowest, log.last, _EVERYTHING)
        if isinstance(found, Missing) or found.body != bodies.pop(found.number, None)
    ]
    wrong += [
        Violation(Check.KEPT, f"{number} was acknowledged, and is not in the log")
        for number in bodies
        if number > log.lowest
    ]
    parsed = {number: Document.parse(world.bodies[key]) for key, number in world.acknowledged.items()}
    for name in sorted(world.left):
        if not world.peers[name].is_up:
            world.peers[name].disk.start()  # what it had got when it left is right too
    for asked in world.asked.values():
        if asked.start is not None:
            wrong += _wrong_of(world, asked, parsed)
    return wrong


def _wrong_of(world: World, asked: Asked, parsed: dict[int, Document]) -> list[Violation]:
    has_left = asked.site in world.left
    if (lacks := world.lacks(asked)) and not has_left:
        return [Violation(Check.COMPLETE, lacks)]
    known = world.peers[asked.site].results.hosted(asked.name)
    entry = world.source.log.subscription(asked.name)
    if known is None or entry is None:
        return []  # it has left
    stored = world.peers[asked.site].had(asked.name)
    items = {one.number: one for one in stored}
    wrong = []
    if not asked.start == known.start == entry.start:
        starts = f"{asked.start}, and {known.start} there, {entry.start} here"
        wrong.append(Violation(Check.START, f"{asked.name} starts after {starts}"))
    wrong += [
        Violation(Check.ORDER, f"{asked.name} has {after.number} behind {before.number}")
        for before, after in pairwise(stored)
        if after.number <= before.number
    ]
    for number, item in items.items():
        if number not in parsed and item.kind is Kind.RESULTS:
            wrong.append(Violation(Check.ROWS, f"{asked.name} has {number}, which is no document"))
        if number <= known.start:
            wrong.append(Violation(Check.START, f"{asked.name} has {number}, and begins after {known.start}"))
    # Who has left has what came until then. Behind its end may be what came before that was known, and is right.
    last = world.source.log.last if entry.end is None else entry.end
    upto = min(known.frontier.upto, last) if has_left else last
    pattern, lost = Pattern.parse(asked.text), _covered_by_gaps(items)
    if lost:
        world.fault("gap", f"{asked.name} lacks {sorted(lost)}")
    for number, document in parsed.items():
        if number <= known.start or (number > upto and number not in items):
            continue
        if number in lost:
            if number > world.dropped:
                wrong.append(Violation(Check.GAPS, f"{asked.name} has a gap at {number}, which was never dropped"))
            continue
        rows, found = list(match(pattern, document).rows()), items.get(number)
        mine = [] if found is None else list(decode_whole(pattern, found.data).rows())
        if mine != rows:
            of = f"{asked.name} at {asked.site} ({asked.text})"
            wrong.append(Violation(Check.ROWS, f"{of} has {mine} for {number}, not {rows}"))
    return wrong


def _covered_by_gaps(items: dict[int, Item]) -> set[int]:
    gaps = [item for item in items.values() if item.kind is Kind.GAP]
    return {number for item in gaps for number in range(item.after + 1, item.number + 1)}
