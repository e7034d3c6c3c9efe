"""What can go wrong in a content-driven network."""

from __future__ import annotations


class ContentError(Exception):
    """Base of what is raised here."""


class MalformedContent(ContentError):
    """Bytes from elsewhere that are no frame."""


class TooMuch(ContentError):
    """More messages under way than are allowed; try again later."""


class UnknownSubscription(ContentError):
    """A subscription that there is not, or not any more."""
