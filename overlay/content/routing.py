"""Where a message goes next: two routings behind one question.

Theory of operation. A machine is asked to bring a message to everybody under a prefix. It answers for its own
zones there, and asks others for the rest; ``parts`` says for what.

*Over the tree.* Walk down from the prefix. A subtree in which the machine owns a zone is looked into; any other
one that meets the region becomes one request, to the owner of its zone nearest the region's corner. What is asked
for shrinks with every request, and every zone that meets the region is asked for once: one message per zone, and
no more than the depth of the tree one after the other.

*From neighbour to neighbour*, as in CAN and Meghdoot. Every zone that meets the region, but for the one at its
corner, has one *parent*: take the zone's point nearest to the corner, on the first axis where that is not level
with the corner step over the zone's border towards it; the zone on the other side is the parent. The step stays
within the region, since regions are closed towards their corners; and it comes nearer on one axis and no farther
on any, so parents make a tree with the corner's zone as its root. A zone passes a message to those neighbours
whose parent it is: it needs to know no more than their boxes. Where machines know different versions of the map a
zone might be nobody's child; the source sees this, as what was reached is acknowledged by prefix, and asks for the
rest over the tree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rewriting.filters.region import below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from overlay.zones.tree import ZoneTree
    from overlay.zones.zone_map import ZoneMap
    from rewriting.filters.region import Box, Point, Region


class Request(NamedTuple):
    """What somebody is asked for."""

    prefix: str
    to_neighbours: bool


class Parts(NamedTuple):
    """How a request is answered: zones of one's own that meet the region, and what others are asked for."""

    own: list[str]
    others: list[Request]


def is_mine(known: ZoneMap, me: str, prefix: str) -> bool:
    """Say whether a machine owns something under a prefix, or all of it."""
    at = known.tree.nearest_known(prefix)
    return any(zone.startswith(at) or at.startswith(zone) for zone in known.owned_by(me))


def parts(known: ZoneMap, me: str, asked: Request, region: Region) -> Parts:
    """Say who answers for what of a request. Prefixes that the map does not know are part of a zone that it
    does."""
    at = known.tree.nearest_known(asked.prefix)
    found = Parts([], [])
    _under(known, known.owned_by(me), at, region, found)
    if not asked.to_neighbours:
        return found
    # Children that are one's own are looked at in turn: between zones of one machine nothing is sent.
    waiting, seen = [at], {at}
    while waiting:
        for child in children(known.tree, waiting.pop(), region):
            if known.owner(child) == me and child not in seen:
                found.own.append(child)
                waiting.append(child)
                seen.add(child)
            elif child not in seen:
                found.others.append(Request(child, True))
                seen.add(child)
    return found


def _under(known: ZoneMap, mine: Sequence[str], prefix: str, region: Region, found: Parts) -> None:
    tree = known.tree
    waiting = [prefix]
    while waiting:
        at = waiting.pop()
        if not region.meets(tree.box(at)):
            continue
        if not any(zone.startswith(at) for zone in mine):
            found.others.append(Request(at, False))
        elif tree.is_leaf(at):
            found.own.append(at)
        else:
            waiting += (at + "1", at + "0")


def children(tree: ZoneTree, zone: str, region: Region) -> list[str]:
    """List the neighbours of a zone that it passes a message to."""
    box = tree.box(zone)
    found = []
    for name in tree.neighbours(zone):
        other = tree.box(name)
        if region.meets(other):
            step = towards_corner(other, region)
            if step is not None and box.contains(step):
                found.append(name)
    return found


def towards_corner(box: Box, region: Region) -> Point | None:
    """Return the point right behind the border of a zone, towards the region's corner; None if that is inside."""
    point, corner = region.entry(box), region.corner
    for axis, (x, c) in enumerate(zip(point, corner, strict=True)):
        if x != c:
            step = box.highs[axis] if c > x else below(box.lows[axis])
            return (*point[:axis], step, *point[axis + 1 :])
    return None


def next_towards(known: ZoneMap, mine: Sequence[str], region: Region) -> str | None:
    """Return the zone to which a message goes next on its way to the corner; None if it is there.

    Greedy, as in CAN: the neighbour with the point nearest to the corner; here, on the most axes level with it,
    then by the sum of distances.
    """
    tree = known.tree
    corner = tree.box("").nearest(region.corner)
    target = tree.entry(region)
    if target in mine or not mine:
        return None if mine else target
    options = {name for zone in mine for name in tree.neighbours(zone)} - set(mine)
    here = min(_distance(tree.box(zone), corner) for zone in mine)
    best = min(options, key=lambda name: (_distance(tree.box(name), corner), name), default=target)
    return best if _distance(tree.box(best), corner) < here else target


def _distance(box: Box, point: Point) -> tuple[int, float]:
    away = [abs(x - p) for x, p in zip(box.nearest(point), point, strict=True) if x != p]
    return len(away), sum(away)
