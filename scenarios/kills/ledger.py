"""What was acknowledged, and what everybody must have because of it: judged by direct matching.

Documents are known here once the source has answered with their numbers. Several publishers may be waiting for an
answer each, so only the documents up to the lowest of what each got last are all known (``settled``).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from xmlmatch import Document, Pattern, match

if TYPE_CHECKING:
    from collections.abc import Iterable

EVERYTHING: Final = 1 << 60
_MOST_WRONG: Final = 20


@dataclass(slots=True)
class Owed:
    """A subscription that was acknowledged: it owes the documents in (``start``, ``end``]. ``seen``: it said once
    that it is complete up to there."""

    name: str
    peer: str
    pattern: Pattern
    start: int
    end: int | None = None
    seen: int = 0
    checked: int = 0


@dataclass(slots=True)
class Ledger:
    """All that was acknowledged; any thread may use it."""

    documents: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    subscriptions: dict[str, Owed] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    compared: int = 0
    _numbers: dict[str, int] = field(default_factory=dict)
    _last: dict[str, int] = field(default_factory=dict)
    _rows: dict[tuple[str, tuple[str, ...], int], list[dict[str, Any]]] = field(default_factory=dict)
    _parsed: dict[int, Document] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def complain(self, what: str) -> None:
        """Note that something is wrong; the first ones are enough."""
        with self._lock:
            if len(self.wrong) < _MOST_WRONG:
                self.wrong.append(what)

    # Documents.

    def begin(self, publisher: str) -> None:
        """Somebody will publish."""
        with self._lock:
            self._last[publisher] = 0

    def published(self, publisher: str, name: str, body: bytes, number: int) -> None:
        """The source has numbered a document, or has told its number again."""
        with self._lock:
            known = self._numbers.setdefault(name, number)
            if known != number:
                self.complain(f"{name} has number {known}, and later {number}")
            if self.documents.setdefault(number, (name, body))[0] != name:
                self.complain(f"{number} is the number of {self.documents[number][0]}, and of {name}")
            self._last[publisher] = max(self._last[publisher], number)

    def done(self, publisher: str) -> None:
        """Somebody publishes no more."""
        with self._lock:
            self._last[publisher] = EVERYTHING

    @property
    def settled(self) -> int:
        """Every document up to there is known."""
        with self._lock:
            return min(self._last.values(), default=0)

    @property
    def last(self) -> int:
        """The highest number of a document."""
        with self._lock:
            return max(self.documents, default=0)

    # Subscriptions.

    def subscribed(self, name: str, peer: str, text: str, start: int) -> None:
        """A subscription is acknowledged."""
        with self._lock:
            self.subscriptions[name] = Owed(name, peer, Pattern.parse(text), start, checked=start)

    def unsubscribed(self, name: str, end: int) -> None:
        """Its end is acknowledged."""
        with self._lock:
            self.subscriptions[name].end = end

    def live(self) -> list[Owed]:
        """List the subscriptions that have not ended."""
        with self._lock:
            return [one for one in self.subscriptions.values() if one.end is None]

    def of(self, peer: str) -> list[Owed]:
        """List the subscriptions of a peer, ended ones included."""
        with self._lock:
            return [one for one in self.subscriptions.values() if one.peer == peer]

    # Judging.

    def check(self, owed: Owed, entries: Iterable[dict[str, Any]], *, since: int) -> None:
        """Compare what a subscription has after a document with what it must have."""
        found: dict[int, list[dict[str, Any]]] = {}
        complete = last = 0
        for entry in entries:
            if "complete" in entry:
                complete = entry["complete"]
            elif "row" not in entry:
                self.complain(f"{owed.name} of {owed.peer} has {entry}")
            else:
                if entry["document"] < last:
                    self.complain(f"{owed.name}: {entry['document']} comes after {last}")
                last = entry["document"]
                found.setdefault(last, []).append(entry["row"])
        with self._lock:
            self._judge(owed, found, since, complete)

    def _judge(self, owed: Owed, found: dict[int, list[dict[str, Any]]], since: int, complete: int) -> None:
        if complete < owed.seen:
            self.complain(f"{owed.name} was complete up to {owed.seen}, and now up to {complete}")
        owed.seen = max(owed.seen, complete)
        upto = min(complete, self.settled)
        first = max(since, owed.start)
        end = EVERYTHING if owed.end is None else owed.end
        for number in sorted(n for n in {*self.documents, *found} if first < n <= upto):
            want = self._wanted(owed.pattern, number) if number <= end else []
            self.compared += 1
            if found.get(number, []) != want:
                self.complain(
                    f"{owed.name} of {owed.peer} ({owed.pattern.text}, after {owed.start}, up to {owed.end}) has "
                    f"{found.get(number, [])} for {number}, not {want}"
                )
        if any(number <= first for number in found):
            self.complain(f"{owed.name} has documents before {first}: {sorted(found)[:3]}")
        owed.checked = max(owed.checked, upto)

    def _wanted(self, pattern: Pattern, number: int) -> list[dict[str, Any]]:
        """Return what direct matching gives, as a user sees it; equal patterns may have their columns in another
        order."""
        if number not in self.documents:
            return []
        key = pattern.text, pattern.columns, number
        if key not in self._rows:
            if number not in self._parsed:
                self._parsed[number] = Document.parse(self.documents[number][1])
            self._rows[key] = [
                {
                    name: value if isinstance(value, str) else list(value)
                    for name, value in zip(pattern.columns, row, strict=True)
                }
                for row in match(pattern, self._parsed[number]).rows()
            ]
        return self._rows[key]
