"""Results as bytes: what is stored, what travels, and how one subscription's become another's.

The *whole* results of a pattern are columns with a list for every node of it; stored results are always whole. A
link to another subscription carries what that one asks of them (``Link``), told by a *cut*: the provisions as
bytes, which the receiver works out and the sender obeys; an empty cut asks for the whole.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from overlay.feeds.items import Item, Kind
from peer.hosting.whole_document import document_in
from rewriting import at_once
from rewriting.columns import Columns, decode_untrusted, encode
from rewriting.errors import ColumnsTooLargeError, RewritingError, WrongColumnsError
from rewriting.execution import Link, Rewriting, links_of
from rewriting.providers import Provision, feeder, provision
from rewriting.statistics import Statistics
from rewriting.table import carries
from xmlmatch import Document, Matcher, NodeSets, Pattern
from xmlmatch.errors import XmlMatchError
from xmlmatch.pattern import ANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xmlmatch.matcher import Matches

_MOST_PROVISIONS: Final = 4096
_SMALL: Final = 256 << 10
DOCUMENTS: Final = Pattern.parse("/*{cont}")
"""The pattern whose results are whole documents; see ``relay``."""
MATCH: Final = b"match"
"""The cut that asks whoever has whole documents for what matching them gives."""


class BadLink(Exception):
    """A cut does not fit the pattern it is asked of."""


def whole_link(pattern: Pattern) -> Link:
    """Return the link that carries everything of a pattern: also values that its predicates fix, for whoever reads
    them from it."""
    return _whole_link(pattern.text)


@lru_cache(maxsize=20_000)
def _whole_link(text: str) -> Link:
    pattern = Pattern.parse(text)
    names = [node.label == ANY for node in pattern.nodes]
    own = [
        Provision(n, n, carries(node), by_value=False, by_name=False, names=names[n])
        for n, node in enumerate(pattern.nodes)
    ]
    return Link(pattern, pattern, tuple(own))


def from_document(link: Link, matches: Matches, place: int, document: Document) -> bytes:
    """Encode what one pattern matched on a document; ``link`` is its ``whole_link``."""
    return encode(link.send(NodeSets(link.view, document, matches.sets(place))))


def made(link: Link, matches: Matches, place: int, number: int, name: str) -> Item:
    """Make the results that one pattern has of a document; an error if they are more than can be sent."""
    try:
        return Item(number, Kind.RESULTS, from_document(link, matches, place, matches.document), name=name)
    except ColumnsTooLargeError as exc:
        return trouble(number, name, exc)


def parsed(body: bytes) -> Document:
    """Parse a document; of the last few, small ones, what was parsed is there already: they are read by everybody
    whom they match, one after the other."""
    return _parsed(body) if len(body) <= _SMALL else Document.parse(body)


@lru_cache(maxsize=8)
def _parsed(body: bytes) -> Document:
    return Document.parse(body)


def matched_alone(pattern: Pattern, number: int, name: str, body: bytes) -> Item | None:
    """Match one pattern on a document; None for nothing, an error where it cannot be."""
    try:
        matches = Matcher([pattern]).match(parsed(body))
    except XmlMatchError as exc:
        return trouble(number, name, exc)
    return made(whole_link(pattern), matches, 0, number, name) if len(matches) else None


def whole_document(document: Document, number: int, name: str) -> Item:
    """Make the results that ``DOCUMENTS`` has of a document, which is its first node, without matching it."""
    results = NodeSets(DOCUMENTS, document, (np.zeros(1, np.int32),))
    try:
        return Item(number, Kind.RESULTS, encode(whole_link(DOCUMENTS).send(results)), name=name)
    except ColumnsTooLargeError as exc:
        return trouble(number, name, exc)


def trouble(number: int, name: str, exc: Exception) -> Item:
    """Say in place of results why there are none."""
    return Item(number, Kind.ERROR, " ".join(str(exc).split())[:500].encode(), name=name)


def encode_whole(results: NodeSets) -> bytes:
    """Encode results whose nodes are those of the pattern and no others."""
    nodes = results.document
    lists = {n: nodes.positions(own) for n, own in enumerate(results.sets)}
    return encode(Columns(nodes, lists))  # type: ignore[arg-type]  # results of a rewriting stand in a fragment


def decode_whole(pattern: Pattern, data: bytes) -> NodeSets:
    """Read whole results; raise ``RewritingError`` where they are none of this pattern."""
    columns = read_whole(pattern, data)
    if not columns:
        return NodeSets(pattern, columns.nodes, tuple(np.empty(0, np.int32) for _ in pattern.nodes))
    pre = columns.nodes.pre
    return NodeSets(pattern, columns.nodes, tuple(pre[columns.lists[n]] for n in range(len(pattern.nodes))))


def read_whole(pattern: Pattern, data: bytes) -> Columns:
    """Read whole results as columns; raise ``RewritingError`` where they are none of this pattern."""
    columns = decode_untrusted(data)
    if columns:
        whole_link(pattern).check(columns)
    return columns


def is_whole(pattern: Pattern, data: bytes) -> bool:
    """Say whether there are results, and not nothing; ``RewritingError`` if they are none of this pattern."""
    if pattern.text == DOCUMENTS.text and document_in(data) is not None:
        return True
    quickly = at_once.holds(whole_link(pattern), data)
    return bool(read_whole(pattern, data)) if quickly is None else quickly


def write_cut(link: Link) -> bytes:
    """Write what a link carries, to be asked for."""
    return msgspec.msgpack.encode([tuple(p[:6]) for p in link.provisions])


_CUT: Final = msgspec.msgpack.Decoder(list[tuple[int, int, int, bool, bool, bool]])


def read_cut_untrusted(view: Pattern, query: Pattern, cut: bytes) -> Link:
    """Read what is asked of a view for a query; ``BadLink`` where the view cannot provide it so."""
    try:
        asked = [Provision(*fields) for fields in _CUT.decode(cut)]
    except msgspec.DecodeError as exc:
        raise BadLink(str(exc)) from None
    if not 0 < len(asked) <= _MOST_PROVISIONS:
        raise BadLink(f"{len(asked)} provisions")
    for p in asked:
        if not (0 <= p.query_node < len(query.nodes) and 0 <= p.view_node < len(view.nodes)):
            raise BadLink(f"no such nodes: {p.view_node} for {p.query_node}")
        # Not whether the view node covers the query's: that is what the receiver has worked out.
        able = provision(view, p.view_node, query, p.query_node)
        if able is None or p[:6] != able[:6]:
            raise BadLink(f"node {p.view_node} of {view} cannot provide node {p.query_node} of {query} so")
    return Link(view, query, tuple(asked))


def cut_results(link: Link, data: bytes) -> bytes:
    """Make what a link carries from whole results; empty for nothing."""
    quickly = cut_at_once(link, data)
    return cut_columns(link, read_whole(link.view, data)) if quickly is None else quickly


def cut_at_once(link: Link, data: bytes) -> bytes | None:
    """Make what a link carries from whole results in the quick way; None where there is none."""
    return at_once.cut(link, whole_link(link.view), data)


def cut_columns(link: Link, whole: Columns) -> bytes:
    """Make what a link carries from whole results that have been read; empty for nothing."""
    columns = link.cut(whole)
    return encode(columns) if columns else b""


@dataclass(frozen=True)
class Joining:
    """How a subscription's results come from its inputs': as they are, or by a rewriting."""

    query: Pattern
    views: tuple[Pattern, ...]

    @cached_property
    def rewriting(self) -> Rewriting | None:
        """The rewriting; None where the one input has the same results."""
        if self.is_copy:
            return None
        able = [feeder(view, self.query, Statistics()) for view in self.views]
        known = [one for one in able if one is not None]
        covered = {n for one in known for n in one.provisions}
        if len(known) < len(self.views) or len(covered) < len(self.query.nodes):
            raise BadLink(f"{self.query} cannot be computed from {', '.join(map(str, self.views))}")
        return Rewriting(self.query, links_of(self.query, known), 0)

    @property
    def is_copy(self) -> bool:
        """Whether results are taken as they are: from the source, a relay, or an equal subscription."""
        return self.views in ((), (self.query,), (DOCUMENTS,))

    def cuts(self) -> list[bytes]:
        """Say what to ask of every input."""
        if self.views == (DOCUMENTS,) and self.query != DOCUMENTS:
            return [MATCH]
        return [b""] if self.rewriting is None else [write_cut(link) for link in self.rewriting.links]

    def join(self, inputs: Sequence[bytes], *, own: bool = False) -> bytes:
        """Compute the whole results from what the inputs sent; empty for none. ``RewritingError`` if it is not
        what was asked for; ``own``: a copy of what this machine has made need not be looked at."""
        if self.rewriting is None and own:
            return inputs[0]
        if self.rewriting is None:
            return inputs[0] if is_whole(self.query, inputs[0]) else b""
        quickly = at_once.join(self.rewriting, inputs)
        if quickly is not None:
            return quickly
        try:
            found = self.rewriting.receive([decode_untrusted(data) for data in inputs])
        except (ValueError, IndexError, KeyError, XmlMatchError) as exc:
            raise WrongColumnsError(str(self.query), str(exc)) from exc
        return encode_whole(found) if found else b""


__all__ = [
    "DOCUMENTS", "MATCH", "BadLink", "Joining", "RewritingError", "cut_at_once", "cut_columns", "cut_results",
    "decode_whole", "encode_whole", "from_document", "made", "matched_alone", "read_cut_untrusted", "read_whole",
    "trouble", "whole_document", "whole_link", "write_cut",
]  # fmt: skip
