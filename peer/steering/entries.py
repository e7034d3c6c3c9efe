"""What the catalog says of subscriptions and sites, as steering needs it."""

from __future__ import annotations

from typing import NamedTuple

from planner.problem import limit_of


class Entry(NamedTuple):
    """A subscription in the catalog: ``limit`` is its plan limit, None for none; its first document is the one
    after ``start``.

    ``tier``: its capacity tier when it joined, which orders it among its equals for good; None if the limit has
    not changed since.
    """

    subscription: str
    pattern: str
    site: str
    limit: int | None
    start: int
    tier: int | None = None

    @property
    def joined_tier(self) -> int:
        """Its tier when it joined: one more per doubling of the limit, 0 for a limit of 0."""
        return limit_of(self.limit, "").bit_length() if self.tier is None else self.tier


class SiteEntry(NamedTuple):
    """A machine: its plan limit over all its subscriptions, None for none."""

    name: str
    limit: int | None = None
    is_down: bool = False
