"""What can be wrong with zones."""

from __future__ import annotations


class ZoneError(Exception):
    """Base of what is raised here."""


class NoSuchZone(ZoneError):
    """A prefix that no zone has, or that has been split since."""

    def __init__(self, prefix: str) -> None:
        super().__init__(f"there is no zone {prefix or 'of the whole space'!r}")
        self.prefix = prefix


class CannotSplit(ZoneError):
    """A zone that cannot be split, and why."""


class StaleGrant(ZoneError):
    """A change of the map that does not follow on what is known."""


class MalformedZone(ZoneError):
    """Bytes from elsewhere that are no zone."""
