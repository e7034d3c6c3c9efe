"""Who and what takes part in a run, drawn from the scenario's seed: patterns, documents, links."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from scenarios.auction_documents import auction_documents
from scenarios.hosts.links import Link
from scenarios.presets import PRESETS
from scenarios.scenario_file import SOURCE
from xmlmatch import Pattern

if TYPE_CHECKING:
    from scenarios.scenario_file import Scenario


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
    """``first``: subscriptions before the first document; ``later``: those that faults may add, in order."""

    first: list[Wish]
    later: list[Wish]
    documents: list[bytes]


def cast_of(scenario: Scenario) -> Cast:
    """Draw everything that a run needs."""
    part, names = scenario.subscriptions, scenario.names
    more = sum(fault.subscribe for fault in scenario.faults)
    drawn = (
        PRESETS[part.preset](scenario.seed, part.count + more, _nothing).subscriptions if part.count + more else []
    )
    wishes = [Wish(names[i % len(names)], pattern, part.limit) for i, pattern in enumerate(drawn)]
    listed = [
        Wish(one.host, Pattern.parse(one.pattern), part.limit if one.limit is None else one.limit)
        for one in part.listed
    ]
    return Cast(
        [*listed, *wishes[: part.count]], wishes[part.count :],
        list(auction_documents(scenario.seed, scenario.documents.count)),
    )  # fmt: skip


def links_of(scenario: Scenario) -> tuple[Link, dict[tuple[str, str], Link]]:
    """Return what lies between all, and between the pairs for which it is drawn or said."""
    part, rng = scenario.links, random.Random(f"{scenario.seed} links")
    low, high = part.range_ms
    common = Link((low + high) / 2, part.jitter_ms, part.mbit, part.loss)
    pairs = {}
    if low < high:
        for pair in combinations([SOURCE, *scenario.names], 2):
            pairs[pair] = Link(round(rng.uniform(low, high), 2), part.jitter_ms, part.mbit, part.loss)
    for said in part.between:
        one, other = sorted(said.hosts, key=[SOURCE, *scenario.names].index)
        pairs[one, other] = Link(said.rtt_ms, said.jitter_ms, said.mbit, said.loss)
    return common, pairs
