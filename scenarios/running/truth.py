"""What everybody must have, by direct matching, and what everybody has, read from the stores after the run.

A result is kept as a short hash of its encoding, which is a function of the document; where hashes differ the rows
decide. Stores also say when a result was written, so the same pass gives the delivery times.
"""

from __future__ import annotations

import hashlib
import sqlite3
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from overlay.feeds.items import Item
from overlay.feeds.items import Kind as ItemKind
from peer.hosting.relay import document_of, resolved_reference
from peer.hosting.results import decode_whole, from_document, whole_link
from peer.storage.result_values import Kind
from rewriting.errors import RewritingError
from xmlmatch import Document, Matcher, Pattern, match
from xmlmatch.errors import XmlMatchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_MOST_VIOLATIONS: Final = 20


@dataclass(frozen=True, slots=True)
class Published:
    """A document: its number, and when it was due. ``is_warm``: how long it took does not count."""

    number: int
    due: float
    body: bytes
    is_warm: bool = False


@dataclass(slots=True)
class Owed:
    """A subscription: it is owed the documents in (start, end]. Until its machine has heard of the end, at the
    latest at ``end_known_at``, it may take in more: those are *early* results."""

    name: str
    host: str
    pattern: Pattern
    start: int
    end: int | None = None
    end_known_at: float = 0.0

    def owes(self, number: int) -> bool:
        """Say whether a document is among them."""
        return self.start < number and (self.end is None or number <= self.end)

    def may_have(self, number: int, at: float) -> bool:
        """Say whether it may have stored a document behind its end then."""
        return self.end is not None and self.end < number and at <= self.end_known_at


@dataclass(slots=True)
class Verdict:
    """``times``: per subscription the seconds from when a document was due until its result was stored."""

    expected: int = 0
    delivered: int = 0
    early: int = 0
    wrong: int = 0
    gaps: int = 0
    errors: int = 0
    violations: list[str] = field(default_factory=list)
    times: dict[str, dict[int, float]] = field(default_factory=dict)

    def complain(self, what: str) -> None:
        """Note something wrong; the first ones are told."""
        self.wrong += 1
        if len(self.violations) < _MOST_VIOLATIONS:
            self.violations.append(what)


class Truth:
    """The results of some patterns on some documents, as hashes."""

    def __init__(
        self, patterns: list[Pattern], documents: list[Published], tick: Callable[[], None] = lambda: None
    ) -> None:
        distinct = {pattern.text: pattern for pattern in patterns}
        self._places = {text: place for place, text in enumerate(distinct)}
        self._bodies = {one.number: one.body for one in documents}
        self._hashes: dict[tuple[int, int], bytes] = {}
        self._relayed: dict[bytes, dict[int, bytes]] = {}
        self._matcher = Matcher(list(distinct.values()))
        self._links = [whole_link(pattern) for pattern in distinct.values()]
        self.bytes = np.zeros(len(distinct), np.int64)
        """How much the results of each pattern take together."""
        for one in documents:
            for place, data in self._results(Document.parse(one.body)):
                self._hashes[place, one.number] = _hash(data)
                self.bytes[place] += len(data)
            tick()

    def _results(self, document: Document) -> Iterator[tuple[int, bytes]]:
        matches = self._matcher.match(document)
        for at, place in enumerate(matches.keys.tolist()):
            yield place, from_document(self._links[place], matches, at, document)

    def place(self, pattern: Pattern) -> int:
        """Return the number of a pattern."""
        return self._places[pattern.text]

    def expects(self, place: int, number: int) -> bool:
        """Say whether a document has results for a pattern."""
        return (place, number) in self._hashes

    def is_right(self, pattern: Pattern, number: int, data: bytes) -> bool:
        """Say whether these are the results."""
        known = self._hashes.get((self.place(pattern), number))
        if known is None:
            return False
        if known == _hash(data):
            return True
        try:
            found = list(decode_whole(pattern, data).rows())
        except RewritingError:
            return False
        return found == list(match(pattern, Document.parse(self._bodies[number])).rows())

    def is_right_reference(self, pattern: Pattern, number: int, relayed: Relayed) -> bool:
        """Say whether what a stored document gives are the results."""
        known = self._hashes.get((self.place(pattern), number))
        if known is not None and known == relayed.hashes.get(self.place(pattern)):
            return True
        try:
            found = resolved_reference(pattern, Item(number, ItemKind.RESULTS, relayed.data))
        except RewritingError:
            return False
        return found.kind is ItemKind.RESULTS and self.is_right(pattern, number, found.data)

    def relayed(self, data: bytes) -> Relayed:
        """Match a document as a relay has stored it; once for equal ones."""
        key = _hash(data)
        if key not in self._relayed:
            try:
                document = document_of(Item(0, ItemKind.RESULTS, data))
                self._relayed[key] = {place: _hash(found) for place, found in self._results(document)}
            except (XmlMatchError, RewritingError):
                self._relayed[key] = {}
        return Relayed(data, self._relayed[key])


@dataclass(frozen=True, slots=True)
class Relayed:
    """A document as a relay has stored it, and the hash of what each pattern has on it."""

    data: bytes
    hashes: Mapping[int, bytes]


def judge(
    stores: Mapping[str, Path], owed: list[Owed], documents: list[Published], truth: Truth,
    clocks: Mapping[str, float] | None = None,
) -> Verdict:  # fmt: skip
    """Compare the stores of all hosts with the truth. ``clocks``: how far theirs are ahead of ours."""
    verdict = Verdict()
    numbers = {one.number: one for one in documents}
    by_host: dict[str, list[Owed]] = {}
    for one in owed:
        by_host.setdefault(one.host, []).append(one)
    for host, mine in by_host.items():
        if not stores[host].exists():
            verdict.complain(f"{host} has left no store")
            continue
        connection = sqlite3.connect(f"{stores[host].absolute().as_uri()}?mode=ro", uri=True)
        try:
            relayed = {
                seq: truth.relayed(data)
                for seq, data in connection.execute(
                    "SELECT seq, data FROM results WHERE seq IN"
                    " (SELECT document FROM results UNION ALL SELECT document FROM followed)"
                )
            }
            for one in mine:
                rows = _Rows(connection, relayed, truth, ahead_s=(clocks or {}).get(host, 0.0))
                _judge_one(rows, one, numbers, truth, verdict)
        finally:
            connection.close()
    return verdict


@dataclass(frozen=True, slots=True)
class _Rows:
    """The results of one host."""

    connection: sqlite3.Connection
    relayed: Mapping[int, Relayed]
    truth: Truth
    ahead_s: float

    def of(self, one: Owed) -> Iterator[tuple[int, int, int, float, bool]]:
        """Yield number, kind, after, when by our clock it was stored, and whether it is right."""
        rows = self.connection.execute(
            "SELECT seq, number, kind, after, at, document, data FROM results JOIN hosted ON hosted = key"
            " WHERE id = :name UNION ALL SELECT d.seq, d.number, :kind, NULL, d.at, d.seq, x'' FROM hosted"
            " JOIN followed AS f ON substr(f.followers, key, 1) = x'01' JOIN results AS d ON d.seq = f.document"
            " WHERE id = :name ORDER BY seq",
            {"name": one.name, "kind": Kind.REFERENCE.value},
        )
        for _, number, kind, after, at, document, data in rows:
            if kind == Kind.REFERENCE:
                meant = self.relayed.get(document)
                is_right = meant is not None and self.truth.is_right_reference(one.pattern, number, meant)
            else:
                is_right = kind == Kind.BATCH and self.truth.is_right(one.pattern, number, data)
            yield number, kind, after, at - self.ahead_s, is_right


def _judge_one(rows: _Rows, one: Owed, documents: Mapping[int, Published], truth: Truth, verdict: Verdict) -> None:
    place = truth.place(one.pattern)
    missing = {number for number in documents if one.owes(number) and truth.expects(place, number)}
    verdict.expected += len(missing)
    times = verdict.times.setdefault(one.name, {})
    last = 0
    for number, kind, after, at, is_right in rows.of(one):
        if number <= last:
            verdict.complain(f"{one.name} at {one.host}: {number} stands after {last}")
        last = number
        if kind == Kind.GAP:
            verdict.gaps += 1
            missing -= set(range(after + 1, number + 1))
        elif kind == Kind.ERROR:
            verdict.errors += 1
            missing.discard(number)
        elif one.may_have(number, at) and is_right:
            verdict.early += 1
        elif number not in missing:
            verdict.complain(f"{one.name} at {one.host} ({one.pattern.text}) has {number}, which is not owed")
        else:
            missing.discard(number)
            verdict.delivered += 1
            if not documents[number].is_warm:
                times[number] = at - documents[number].due
            if not is_right:
                verdict.complain(f"{one.name} at {one.host} ({one.pattern.text}) has another result for {number}")
    for number in sorted(missing):
        verdict.complain(f"{one.name} at {one.host} ({one.pattern.text}) lacks {number}")


def levels_of(
    times: Mapping[str, Mapping[int, float]], levels: Mapping[str, int]
) -> dict[int, NDArray[np.float64]]:
    """Gather the delivery times of subscriptions by level."""
    found: dict[int, list[float]] = {}
    for name, by_number in times.items():
        found.setdefault(levels.get(name, 0), []).extend(by_number.values())
    return {level: np.array(found[level]) for level in sorted(found)}


def _hash(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=12).digest()
