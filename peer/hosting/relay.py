"""Whole documents as a subscription: a machine that has them computes its other subscriptions by matching.

Where many subscriptions are on one machine, what they are sent of a document is together more than the document.
Then it is better to have the document come once, from another machine that has it as well, and to match here: a
subscription to ``DOCUMENTS`` is the machine's *relay*. Its results are documents; matching them gives the very
bytes that the source would send. So whoever is fed by a relay asks it not for a cut of its results but for
``MATCH``: what matching gives.

No circle can come of it: only what cannot itself feed ``DOCUMENTS`` is fed by a relay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overlay.feeds.items import Item, Kind
from peer.hosting.results import DOCUMENTS, from_document, read_whole, whole_link
from rewriting.providers import feeder
from rewriting.statistics import Statistics
from xmlmatch import Document, Matcher, Pattern
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from rewriting.execution import Link

_FEW: Final = 4
"""For fewer feeds than this that are behind, each pattern is matched alone."""
_MOST_MADE: Final = 64 << 20
"""How many bytes of results are kept while feeds take turns with the same documents."""


def may_be_relayed(pattern: Pattern) -> bool:
    """Say whether a subscription may be fed by a relay: whatever could feed one may not."""
    return feeder(pattern, DOCUMENTS, Statistics()) is None


class Rematching:
    """The patterns that a relay is asked for, matched together.

    >>> link = whole_link(DOCUMENTS)
    >>> document = Document.parse(b"<a><b>1</b></a>")
    >>> matches = Matcher([DOCUMENTS]).match(document)
    >>> item = Item(7, Kind.RESULTS, from_document(link, matches, 0, document), name="d")
    >>> wanted = Pattern.parse("//b{val}")
    >>> found = Rematching().of(item, wanted, many=False)
    >>> found.number, len(found.data) > 0, Rematching().of(item, Pattern.parse("//c"), many=False)
    (7, True, None)
    """

    def __init__(self) -> None:
        self._matcher = Matcher()
        self._keys: dict[str, int] = {}
        self._links: dict[int, Link] = {}
        self._document: tuple[int, Document] | None = None
        self._made: dict[int, dict[str, Item]] = {}
        self._made_bytes = 0

    def __len__(self) -> int:
        return len(self._keys)

    def want(self, pattern: Pattern) -> None:
        """A pattern is going to be asked for."""
        if pattern.text not in self._keys:
            self._keys[pattern.text] = key = self._matcher.add(pattern)
            self._links[key] = whole_link(pattern)
            self._forget()  # made without it: it would seem to have no results

    def keep(self, wanted: set[str]) -> None:
        """Forget all other patterns."""
        for text in self._keys.keys() - wanted:
            key = self._keys.pop(text)
            self._matcher.remove(key)
            del self._links[key]

    def of(self, item: Item, pattern: Pattern, *, many: bool) -> Item | None:
        """Return what matching a pattern gives on a document, None for nothing. ``many``: others ask as well."""
        if item.kind is not Kind.RESULTS:
            return item
        if many and pattern.text in self._keys:
            if item.number not in self._made:
                self._make(item)
            return self._made[item.number].get(pattern.text)
        return self._matched(item, Matcher([pattern]), {0: whole_link(pattern)}).get(pattern.text)

    def rest(self) -> None:
        """What was made for several documents at once is not needed any more."""
        if len(self._made) > 1:
            self._forget()

    def _make(self, item: Item) -> None:
        """Match everything on a document, and keep it for whoever asks next: each asks for several documents."""
        if self._made_bytes > _MOST_MADE:
            self._forget()
        self._made[item.number] = made = self._matched(item, self._matcher, self._links)
        self._made_bytes += sum(len(one.data) for one in made.values())

    def _forget(self) -> None:
        self._made.clear()
        self._made_bytes = 0

    def _matched(self, item: Item, matcher: Matcher, links: dict[int, Link]) -> dict[str, Item]:
        try:
            document = self._read(item)
            matches = matcher.match(document)
        except XmlMatchError as exc:
            why = " ".join(str(exc).split())[:500].encode()
            wrong = Item(item.number, Kind.ERROR, why, name=item.name)
            return {link.view.text: wrong for link in links.values()}
        found = {}
        for place, key in enumerate(matches.keys.tolist()):
            data = from_document(links[key], matches, place, document)
            found[links[key].view.text] = Item(item.number, Kind.RESULTS, data, name=item.name)
        return found

    def _read(self, item: Item) -> Document:
        if self._document is None or self._document[0] != item.number:
            nodes = read_whole(DOCUMENTS, item.data).nodes
            start, end = nodes.conts[:, 0].tolist()
            self._document = item.number, Document.parse(nodes.payload[start:end].tobytes())
        return self._document[1]


def asked_by_many(behind: int) -> bool:
    """Say whether so many feeds that want a document are worth matching everything at once."""
    return behind >= _FEW
