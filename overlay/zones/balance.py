"""Who takes which zone when machines come, go, or have more to do than others.

A zone's *load* is what the caller measures: subscriptions, messages, or both by weight. A newcomer takes a whole
zone of a machine that has several, if that is where the load is; else half of the most loaded zone, cut where
half of its subscriptions lie on either side. A leaver's zones go one by one to whoever has least to do then.
Rebalancing moves or cuts while one machine has more than ``factor`` times the mean, and ends when nothing helps
any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from overlay.zones.tree import MAX_DEPTH, Split

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from overlay.zones.zone_map import ZoneMap
    from rewriting.filters.region import Box, Point

PointsOf: TypeAlias = "Callable[[str], Sequence[Point]]"
FACTOR: Final = 1.5
"""A machine with so many times the mean load gives some away; nearer to 1 moves more often."""


class Plan(NamedTuple):
    """What to change: zones to cut, and whom to grant zones to."""

    splits: dict[str, Split]
    grants: dict[str, str]

    def __bool__(self) -> bool:
        return bool(self.splits or self.grants)


def best_split(box: Box, points: Sequence[Point], depth: int) -> Split | None:
    """Return where a zone is cut so that its points are halved best; None if they all lie in one place.

    Axes take turns where they are equally good, as in CAN.

    >>> from rewriting.filters.region import Box
    >>> best_split(Box.whole(2), [(1.0, 1.0), (1.0, 2.0), (1.0, 7.0)], depth=0)
    Split(axis=1, value=2.0)
    """
    if depth >= MAX_DEPTH:
        return None
    axes = len(box.lows)
    best: tuple[int, Split] | None = None
    for turn in range(axes):
        axis = (depth + turn) % axes
        values = sorted(point[axis] for point in points)
        for value in _cuts(values):
            if box.lows[axis] < value < box.highs[axis]:
                less = sum(v < value for v in values)
                worse = max(less, len(values) - less)
                if worse < len(values) and (best is None or worse < best[0]):
                    best = worse, Split(axis, value)
    return None if best is None else best[1]


def _cuts(values: Sequence[float]) -> Iterable[float]:
    """List the value in the middle, and the next larger one: ties may make either one better."""
    if not values:
        return ()
    middle = values[len(values) // 2]
    larger = next((v for v in values[len(values) // 2 :] if v > middle), None)
    return (middle,) if larger is None else (middle, larger)


def join(known: ZoneMap, name: str, loads: Mapping[str, float], points: PointsOf) -> Plan:
    """Say what a newcomer takes: a first owner everything, then as the module says; it may be nothing.

    ``points``: where the subscriptions of a zone lie; it is asked only about a zone that is to be cut.
    """
    owners = known.owners()
    if not owners:
        return Plan({}, dict.fromkeys(known.tree.leaves(), name))
    orphans = [leaf for leaf in known.tree.leaves() if leaf not in known.grants]
    if orphans:
        return Plan({}, dict.fromkeys(orphans, name))
    for owner in sorted(owners, key=lambda one: (-_load(owners[one], loads), one)):
        if owner == name:
            continue
        zones = sorted(owners[owner], key=lambda zone: (-loads.get(zone, 0.0), zone))
        if len(zones) > 1:
            return Plan({}, {zones[0]: name})
        cut = best_split(known.tree.box(zones[0]), points(zones[0]), len(zones[0]))
        if cut is not None:
            return Plan({zones[0]: cut}, {zones[0] + "1": name})
    return Plan({}, {})


def leave(known: ZoneMap, name: str, stay: Iterable[str], loads: Mapping[str, float]) -> Plan:
    """Say who takes the zones of a machine that goes, or is gone; nobody, if nobody is left."""
    owners = known.owners()
    load = {one: _load(owners.get(one, ()), loads) for one in stay if one != name}
    grants = {}
    for zone in sorted(owners.get(name, ()), key=lambda zone: (-loads.get(zone, 0.0), zone)):
        if not load:
            break
        heir = min(load, key=lambda one: (load[one], one))
        grants[zone] = heir
        load[heir] += loads.get(zone, 0.0) + 1e-9  # without any load, zones are spread by their number
    return Plan({}, grants)


def rebalance(known: ZoneMap, present: Iterable[str], loads: Mapping[str, float], points: PointsOf) -> Plan:
    """Say what moves from the most loaded machine to the least loaded one; an empty plan if it would not help."""
    owners = known.owners()
    load = {one: _load(owners.get(one, ()), loads) for one in present}
    if len(load) < 2:
        return Plan({}, {})
    most, least = max(load, key=lambda one: (load[one], one)), min(load, key=lambda one: (load[one], one))
    if load[most] <= FACTOR * sum(load.values()) / len(load):
        return Plan({}, {})
    zones = sorted(owners[most], key=lambda zone: (-loads.get(zone, 0.0), zone))
    for zone in zones:
        if load[least] + loads.get(zone, 0.0) < load[most] and len(zones) > 1:
            return Plan({}, {zone: least})
    cut = best_split(known.tree.box(zones[0]), points(zones[0]), len(zones[0]))
    return Plan({}, {}) if cut is None else Plan({zones[0]: cut}, {zones[0] + "1": least})


def _load(zones: Iterable[str], loads: Mapping[str, float]) -> float:
    return sum(loads.get(zone, 0.0) for zone in zones)
