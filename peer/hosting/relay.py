"""Whole documents as a subscription: a machine that has them computes its other subscriptions by matching.

Where many subscriptions are on one machine, what they are sent of a document is together more than the document.
Then it is better to have the document come once, from another machine that has it as well, and to match here: a
subscription to ``DOCUMENTS`` is the machine's *relay*. Its results are documents; matching them gives the very
bytes that the source would send. So whoever is fed by a relay asks it not for a cut of its results but for
``MATCH``: what matching gives.

A document that comes with *marks* (``marks``) need not even be matched for that. One in ``_CHECKED`` is matched
all the same: to know what results take, and that marks are right.

Nor are these bytes stored: a document that matches is noted as a *reference* to what the relay has stored, and
matched again by whoever reads it (``resolved``). Writing results takes ten times as long as finding them.

No circle can come of it: only what cannot itself feed ``DOCUMENTS`` is fed by a relay.
"""

from __future__ import annotations

import logging
from collections import Counter
from itertools import repeat
from typing import TYPE_CHECKING, Final

from overlay.feeds.items import Item, Kind
from peer.hosting.marks import Numbers
from peer.hosting.results import DOCUMENTS, made, matched_alone, read_whole, trouble, whole_link
from peer.hosting.whole_document import document_in
from rewriting.errors import WrongColumnsError
from rewriting.providers import feeder
from rewriting.statistics import Statistics
from xmlmatch import Document, Matcher, Pattern
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Callable

    from peer.hosting.history import Stretch
    from rewriting.execution import Link
    from xmlmatch.matcher import Matches

_LOG: Final = logging.getLogger("distributary.hosting")
_FEW: Final = 4
"""For fewer feeds than this that are behind, each pattern is matched alone."""
_MOST_MADE: Final = 64 << 20
"""How many bytes of results are kept while feeds take turns with the same documents."""
_CHECKED: Final = 64
"""Of so many documents one is matched whatever its marks say, and has results written out, to know how much they
take..."""
_AT_ONCE: Final = 8
"""...those of about so many patterns, in turns: most of the work is the document's, whoever matches it."""


def may_be_relayed(pattern: Pattern) -> bool:
    """Say whether a subscription may be fed by a relay: whatever could feed one may not."""
    return feeder(pattern, DOCUMENTS, Statistics()) is None


def resolved(pattern: Pattern, item: Item) -> Item | None:
    """Return what matching a pattern gives on an item of a relay, None for nothing.

    >>> item = matched_alone(DOCUMENTS, 7, "d", b"<a><b>1</b></a>")
    >>> found = resolved(Pattern.parse("//b{val}"), item)
    >>> found.number, found.name, len(found.data) > 0
    (7, 'd', True)
    """
    if item.kind is not Kind.RESULTS:
        return item
    return matched_alone(pattern, item.number, item.name, _body(item))


def resolved_reference(pattern: Pattern, item: Item) -> Item:
    """Return the results that a reference means, from what it refers to: an item of a relay."""
    found = resolved(pattern, item)
    return found or Item(item.number, Kind.ERROR, b"it matched when it came, and does not now", name=item.name)


def follow(pattern: Pattern, had: Callable[[str, int], Stretch], item: Item) -> Item:
    """Make results of an item that is a reference; ``RewritingError`` if what it refers to is gone. ``had``: reads
    one document of a relay."""
    if item.kind is not Kind.REFERENCE:
        return item
    found = had(item.data.decode(), item.number).items
    if not found or found[0].number != item.number or found[0].kind is not Kind.RESULTS:
        raise WrongColumnsError(pattern.text, f"document {item.number} is not stored here any more")
    return resolved_reference(pattern, found[0])


class Rematching:
    """The patterns that a relay is asked for, matched together.

    >>> item = matched_alone(DOCUMENTS, 7, "d", b"<a><b>1</b></a>")
    >>> wanted, other = Pattern.parse("//b{val}"), Pattern.parse("//c")
    >>> matching = Rematching()
    >>> matching.want(wanted), matching.want(other)
    (None, None)
    >>> matching.references(item, "r")
    {'//b{val}': Item(number=7, kind=<Kind.REFERENCE: 'reference'>, data=b'r', after=-1, name='d')}
    >>> matching.of(item, wanted, many=True) == resolved(wanted, item)
    True
    """

    def __init__(self) -> None:
        self._matcher = Matcher()
        self._wanted: Counter[str] = Counter()
        self._keys: dict[str, int] = {}
        self._links: dict[int, Link] = {}
        self._texts: dict[int, str] = {}
        self._sizes: dict[str, int] = {}
        self._matched: tuple[Item, Matches] | None = None
        self._made: dict[int, dict[str, Item]] = {}
        self._made_bytes = 0
        self.numbers = Numbers()
        self.matched_bytes = 0
        """About how much all that was referred to takes, each pattern once."""

    def want(self, pattern: Pattern) -> None:
        """A pattern is going to be asked for by one more."""
        self._wanted[pattern.text] += 1
        if pattern.text not in self._keys:
            self._keys[pattern.text] = key = self._matcher.add(pattern)
            self._links[key], self._texts[key] = whole_link(pattern), pattern.text
            self.numbers.want(pattern.text)
            self._forget()  # made without it: it would seem to have no results
            self._matched = None

    def unwant(self, text: str) -> None:
        """One less is going to ask for a pattern; if nobody is, it is forgotten."""
        self._wanted[text] -= 1
        if not self._wanted[text]:
            del self._wanted[text]
            key = self._keys.pop(text)
            self._matcher.remove(key)
            del self._links[key], self._texts[key]
            self._sizes.pop(text, None)
            self.numbers.unwant(text)
            self._matched = None  # it knows of keys that are gone

    def of(self, item: Item, pattern: Pattern, *, many: bool) -> Item | None:
        """Return what matching a pattern gives on a document, None for nothing. ``many``: others ask as well."""
        if item.kind is not Kind.RESULTS:
            return item
        if not many or pattern.text not in self._keys:
            return resolved(pattern, item)
        if item.number not in self._made:
            self._make(item)
        return self._made[item.number].get(pattern.text)

    def references(self, item: Item, relay: str) -> dict[str, Item]:
        """Return, for each pattern that is wanted and matches, a reference to a document that a relay has."""
        if item.kind is not Kind.RESULTS:
            return dict.fromkeys(self._keys, item)
        quickly = self.marked(item, relay)
        if quickly is not None:
            return quickly
        try:
            found = self._found(item, is_checked=item.number % _CHECKED == 0)
        except XmlMatchError as exc:
            return dict.fromkeys(self._keys, trouble(item.number, item.name, exc))
        marked = self.numbers.texts(item.marks)
        if marked is not None and set(marked) != set(found):
            _LOG.error("marks are wrong", extra={"document": item.number, "patterns": len(self._keys)})
            self.numbers.doubt()
        self.matched_bytes += sum(map(self._sizes.__getitem__, found))
        return dict.fromkeys(found, Item(item.number, Kind.REFERENCE, relay.encode(), name=item.name))

    def marked(self, item: Item, relay: str) -> dict[str, Item] | None:
        """Return what ``references`` does, by the marks of the document; None where it is to be matched: because
        its marks do not say, or to see whether they are right."""
        if item.number % _CHECKED == 0:
            return None
        found = self.numbers.texts(item.marks)
        if found is None:
            return None
        self.matched_bytes += sum(map(self._sizes.get, found, repeat(0)))  # what is not known yet will be
        return dict.fromkeys(found, Item(item.number, Kind.REFERENCE, relay.encode(), name=item.name))

    def _found(self, item: Item, *, is_checked: bool) -> list[str]:
        """Match a document; return the patterns that do."""
        matches = self._match(item)
        turn, groups = item.number // _CHECKED, max(len(self._keys) // _AT_ONCE, 1)
        found = []
        for place, key in enumerate(matches.keys.tolist()):
            text = self._texts[key]
            if text not in self._sizes or (is_checked and (turn + key) % groups == 0):
                item_of = made(self._links[key], matches, place, item.number, item.name)
                self._sizes[text] = len(item_of.data)
            found.append(text)
        return found

    def rest(self) -> None:
        """What was made for several documents at once is not needed any more."""
        if len(self._made) > 1:
            self._forget()

    def _make(self, item: Item) -> None:
        """Match everything on a document, and keep it for whoever asks next: each asks for several documents."""
        if self._made_bytes > _MOST_MADE:
            self._forget()
        try:
            matches = self._match(item)
        except XmlMatchError as exc:
            self._made[item.number] = dict.fromkeys(self._keys, trouble(item.number, item.name, exc))
            return
        self._made[item.number] = found = {}
        for place, key in enumerate(matches.keys.tolist()):
            found[self._texts[key]] = one = made(self._links[key], matches, place, item.number, item.name)
            self._made_bytes += len(one.data)

    def _match(self, item: Item) -> Matches:
        if self._matched is None or self._matched[0] is not item:
            self._matched = item, self._matcher.match(document_of(item))
        return self._matched[1]

    def _forget(self) -> None:
        self._made.clear()
        self._made_bytes = 0


def document_of(item: Item) -> Document:
    """Parse the document that a relay has stored."""
    return Document.parse(_body(item))


def _body(item: Item) -> bytes:
    """Return the document that a relay has stored."""
    quickly = document_in(item.data)
    if quickly is not None:
        return quickly
    nodes = read_whole(DOCUMENTS, item.data).nodes
    start, end = nodes.conts[:, 0].tolist()
    body: bytes = nodes.payload[start:end].tobytes()
    return body


def asked_by_many(behind: int) -> bool:
    """Say whether so many feeds that want a document are worth matching everything at once."""
    return behind >= _FEW
