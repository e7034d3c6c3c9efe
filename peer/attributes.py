"""Filters and messages on the command line: flat attributes in place of documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from peer.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xmlmatch import Pattern


def read_filter(text: str, select: Sequence[str], *, whole: bool) -> Pattern:
    """Return the pattern over messages that a filter means."""
    from rewriting.filters import Filter, FilterError

    try:
        wanted = Filter.parse(text, select=select, whole=whole)
        if (name := wanted.contradiction) is not None:
            raise CommandError(f"--filter: no value of {name} satisfies this")
        return wanted.pattern()
    except FilterError as exc:
        raise CommandError(f"--filter: {exc}") from None


def check_filter(text: str) -> None:
    """Refuse what is no filter, as for spaces: with ``or``, ``in`` and ``prefix``."""
    from rewriting.filters import Disjunction, FilterError

    try:
        Disjunction.parse(text)
    except FilterError as exc:
        raise CommandError(f"--filter: {exc}") from None


def read_message(pairs: Sequence[str]) -> bytes:
    """Return the document that NAME=VALUE pairs are as a message.

    >>> read_message(["topic=sport", "price=12"])
    b'<message price="12" topic="sport"/>'
    """
    from rewriting.filters import MessageError, message_bytes

    try:
        return message_bytes(read_attributes(pairs))
    except MessageError as exc:
        raise CommandError(f"--attributes: {exc}") from None


def read_attributes(pairs: Sequence[str]) -> dict[str, str]:
    """Read NAME=VALUE pairs."""
    attributes: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CommandError(f"--attributes {pair}: expected NAME=VALUE, such as topic=sport")
        if name in attributes:
            raise CommandError(f"--attributes {pair}: {name} is there twice")
        attributes[name] = value
    return attributes
