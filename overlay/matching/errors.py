"""What can be wrong with subscriptions and events of a matcher."""

from __future__ import annotations


class MatchingError(Exception):
    """The base of all errors of matching."""


class WrongType(MatchingError):
    """An attribute is declared as one type and used as another."""

    def __init__(self, attribute: str, declared: str, found: str) -> None:
        super().__init__(f"{attribute} is declared as {declared}, not {found}")
        self.attribute = attribute


class UnknownSubscription(MatchingError):
    """No subscription has this number."""

    def __init__(self, number: int) -> None:
        super().__init__(f"there is no subscription {number}; it may have been deleted")
        self.number = number


class MatcherFull(MatchingError):
    """A limit of a matcher is reached."""

    def __init__(self, what: str, limit: int) -> None:
        super().__init__(f"a matcher holds up to {limit:,} {what}; open another one")
        self.limit = limit


class BadBatch(MatchingError):
    """Arrays that describe no subscriptions."""
