"""Documents on their way into the source's log: read once, to be accepted and then to be matched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from peer.daemon.questions import NoAnswer
from peer.publication import too_large
from peer.storage.log_values import Appended, NewDocument, NewEntry, Refused
from xmlmatch import Document
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from peer.daemon.committing import Committer

_AT_ONCE: Final = 64 << 10
"""Documents up to this size are read at once, mostly in less than a millisecond; asking a thread takes as long."""


class Publications:
    """What is being published; ``committer`` numbers it."""

    def __init__(self, committer: Committer[NewEntry, Appended | Refused]) -> None:
        self._committer = committer
        self._parsed: dict[int, Document] = {}
        """Documents that wait for the disk, by their entries."""

    async def publish(self, entry: NewDocument) -> dict[str, Any]:
        """Number a document; answers once it is durable. Refused: what is too large, not XML, or has no name."""
        _check_text("name", entry.name)
        _check_text("key", entry.key)
        if problem := too_large(entry.name, len(entry.body)):
            raise NoAnswer(problem)
        try:
            document = await _read(entry.body)
        except XmlMatchError as exc:
            raise NoAnswer(f"{entry.name}: {exc}") from None
        self._parsed[id(entry)] = document
        try:
            done = await self._committer.commit(entry)
        finally:
            self._parsed.pop(id(entry), None)
        if isinstance(done, Refused):
            raise NoAnswer(f"{entry.name}: {done.reason}")
        return {"number": done.number, "is_new": done.is_new}

    def parsed(self, entry: NewDocument) -> Document | None:
        """Return an entry's document, as long as somebody waits for it to be published."""
        return self._parsed.get(id(entry))


def _check_text(what: str, text: str) -> None:
    """Refuse what is no text: JSON from a command can hold half a character, or a number."""
    try:
        str.encode(text)
    except (TypeError, UnicodeEncodeError):
        raise NoAnswer(f"the {what} {ascii(text)[:100]} is no text in UTF-8; give another") from None


async def _read(body: bytes) -> Document:
    return Document.parse(body) if len(body) <= _AT_ONCE else await trio.to_thread.run_sync(Document.parse, body)
