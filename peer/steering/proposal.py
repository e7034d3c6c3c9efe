"""A full plan as the planner proposes it, and what becomes of it.

Only the source decides: a proposal says on which epoch it was made, and is taken over subscription by subscription
where it holds for what the catalog says now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from planner.alternatives import ALTERNATIVES
from planner.configuration import How

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from peer.hosting.configuration import Configuration


class BadProposal(Exception):
    """A row is none of a plan; ``where`` says which, ``why`` says what is wrong with it."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class At(NamedTuple):
    """A subscription on a machine."""

    subscription: str
    site: str


@dataclass(frozen=True, slots=True)
class ProposedFeed:
    """How one subscription is to be fed; without inputs: by the source, or not at all where ``how`` is pending."""

    at: At
    pattern: str
    how: How
    inputs: tuple[At, ...] = ()
    alternatives: tuple[tuple[At, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A full plan made from what was the case in an epoch."""

    base_epoch: int
    feeds: Mapping[str, ProposedFeed]


@dataclass(frozen=True, slots=True)
class Adopted:
    """What became of a proposal. ``configurations``: all that changed; names are sorted.

    ``taken``: fed as proposed. ``kept``: not as proposed, but as before; the others were placed anew. ``rebased``:
    came since, or were to be fed by somebody who is gone or down. ``refused``: why a proposed feed was not taken.
    """

    configurations: tuple[Configuration, ...]
    taken: tuple[str, ...]
    kept: tuple[str, ...]
    rebased: tuple[str, ...]
    refused: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Stale:
    """A proposal was refused whole: another plan has been adopted since it was begun."""

    base_epoch: int
    epoch: int

    @property
    def reason(self) -> str:
        """Why, in one line."""
        return f"the proposal was made in epoch {self.base_epoch}; it is epoch {self.epoch} now: plan again"


def read_proposal(rows: Iterable[Mapping[str, Any]], base_epoch: int) -> Proposal:
    """Read a proposal from rows with the fields of ``plan.parquet``; ``BadProposal`` for anything else.

    >>> row = {"subscription": "s", "site": "m", "pattern": "//a", "how": "source"}
    >>> read_proposal([row | {"inputs": [], "alternatives": []}], 3).feeds["s"].how.name
    'SOURCE'
    """
    feeds: dict[str, ProposedFeed] = {}
    for number, row in enumerate(rows, start=1):
        try:
            feed = _feed(row)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise BadProposal(f"row {number}", f"this is no row of a plan: {exc!r}") from None
        if feed.at.subscription in feeds:
            raise BadProposal(f"row {number}", f"subscription {feed.at.subscription} is there twice")
        feeds[feed.at.subscription] = feed
    return Proposal(base_epoch, feeds)


def _feed(row: Mapping[str, Any]) -> ProposedFeed:
    how = How[_text(row["how"]).upper()]
    inputs = tuple(_at(one["subscription"], one["site"]) for one in row["inputs"])
    if bool(inputs) == (how in (How.SOURCE, How.PENDING)):
        raise ValueError(f"{len(inputs)} inputs, but fed as {how.name}")
    others = tuple(
        tuple(map(_at, way["subscriptions"], way["sites"])) for way in row["alternatives"][:ALTERNATIVES]
    )
    at = _at(row["subscription"], row["site"])
    return ProposedFeed(at, _text(row["pattern"]), how, inputs, tuple(way for way in others if way))


def _at(subscription: object, site: object) -> At:
    return At(_text(subscription), _text(site))


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value
