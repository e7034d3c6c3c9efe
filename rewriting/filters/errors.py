"""What can be wrong with filters and messages."""

from __future__ import annotations

from rewriting.errors import RewritingError


class FilterError(RewritingError):
    """A text that is no filter; ``column`` counts from 1."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"column {position + 1}: {reason}")
        self.reason = reason
        self.column = position + 1


class MessageError(RewritingError):
    """Something that cannot be a message."""


class RegionError(RewritingError):
    """A box or region that has no points, or not as many coordinates as its space."""


class SpaceError(RewritingError):
    """A space that cannot be declared, or a point that does not lie in it."""
