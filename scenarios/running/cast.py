"""Who and what takes part in a run, drawn from the scenario's seed: patterns, documents, links."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Final

from scenarios.auction_documents import auction_documents
from scenarios.hosts.links import Link
from scenarios.presets import PRESETS
from scenarios.scenario_file import SOURCE
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scenarios.scenario_file import Scenario


_SAMPLE: Final = 5
"""How many documents a plan is made from that comes before the first one."""


_OF_JOINER: Final = 5
"""How many subscriptions a host makes that joins later."""


def _nothing() -> None:
    """Nobody watches how far drawing is."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A subscription to be made."""

    host: str
    pattern: Pattern
    limit: int | None


@dataclass(frozen=True, slots=True)
class Cast:
    """``first``: subscriptions before the first document; ``later``: those that faults may add, in order.
    ``documents``: those whose number is known; ``endless_documents`` has those of a full load.
    ``sample``: documents that a plan before the first one is made from; ``warm``: those that come after it, and
    do not count either. ``joining``: what each host subscribes to that joins later."""

    first: list[Wish]
    later: list[Wish]
    documents: list[bytes]
    sample: list[bytes]
    warm: list[bytes]
    joining: dict[str, list[Wish]]


def cast_of(scenario: Scenario) -> Cast:
    """Draw everything that a run needs."""
    part, names = scenario.subscriptions, scenario.names
    ready = part.count + sum(fault.subscribe for fault in scenario.faults)
    total = ready + _OF_JOINER * sum(fault.join for fault in scenario.faults)
    drawn = PRESETS[part.preset](scenario.seed, total, _nothing).subscriptions if total else []
    wishes = [Wish(names[i % len(names)], pattern, part.most_feeds()) for i, pattern in enumerate(drawn[:ready])]
    listed = [Wish(one.host, Pattern.parse(one.pattern), part.most_feeds(one)) for one in part.listed]
    count, warm = scenario.documents.known, scenario.documents.warm
    bodies = list(auction_documents(scenario.seed, count + warm + _sampled(scenario)))
    first = [*listed, *wishes[: part.count]]
    rest = iter(drawn[ready:])
    joining = {
        name: [Wish(name, pattern, part.most_feeds()) for pattern in islice(rest, _OF_JOINER)]
        for name in scenario.everybody[len(names) :]
    }
    return Cast(
        first, wishes[part.count :], bodies[:count], bodies[count + warm :], bodies[count : count + warm], joining
    )


def endless_documents(scenario: Scenario) -> Iterator[bytes]:
    """Draw documents for a full load, one at a time: those behind the ones that come before it."""
    before = scenario.documents.warm + _sampled(scenario)
    return islice(auction_documents(scenario.seed, sys.maxsize), before, None)


def _sampled(scenario: Scenario) -> int:
    return _SAMPLE if scenario.plan else 0


def links_of(scenario: Scenario) -> tuple[Link, dict[tuple[str, str], Link]]:
    """Return what lies between all, and between the pairs for which it is drawn or said."""
    part, rng = scenario.links, random.Random(f"{scenario.seed} links")
    low, high = part.range_ms
    common = Link((low + high) / 2, part.jitter_ms, part.mbit, part.loss)
    pairs = {}
    if low < high:
        for pair in combinations([SOURCE, *scenario.everybody], 2):
            pairs[pair] = Link(round(rng.uniform(low, high), 2), part.jitter_ms, part.mbit, part.loss)
    for said in part.between:
        one, other = sorted(said.hosts, key=[SOURCE, *scenario.everybody].index)
        pairs[one, other] = replace(pairs.get((one, other), common), **said.changes)
    return common, pairs
