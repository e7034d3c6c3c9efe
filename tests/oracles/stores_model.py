"""The stores as plain dicts: what they should hold, told as simply as possible, without durability or limits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from peer.storage import (
    Appended,
    CatalogEntry,
    Entry,
    Frontier,
    Kind,
    Missing,
    NewDocument,
    NewSubscription,
    Refused,
    Start,
    StoredDocument,
)

ROW = 64


def size_of(name, data):
    return len(name.encode()) + len(data) + ROW


@dataclass
class LogModel:
    """The source's log."""

    generation: int = 1
    last: int = 0
    lowest: int = 0
    documents: dict = field(default_factory=dict)
    keys: dict = field(default_factory=dict)
    subscriptions: dict = field(default_factory=dict)
    holes: list = field(default_factory=list)

    def append(self, entries, now):
        return [self._add(entry, now) for entry in entries]

    def _next(self):
        self.last += 1
        return self.last

    def _add(self, entry, now):
        if isinstance(entry, NewDocument):
            known = self.keys.get((entry.publisher, entry.key))
            if known is None:
                number = self._next()
                self.documents[number] = StoredDocument(number, entry.publisher, entry.name, now, entry.body)
                self.keys[entry.publisher, entry.key] = (number, (entry.name, entry.body), now)
                return Appended(number, True)
            if known[1] != (entry.name, entry.body):
                return Refused
            return Appended(known[0], False)
        if isinstance(entry, NewSubscription):
            return self._subscribe(entry)
        known = self.subscriptions.get(entry.subscription)
        if known is None:
            return Refused
        if known.end is not None:
            return Appended(known.end, False, known.start)
        self.subscriptions[known.id] = replace(known, end=self._next())
        return Appended(self.last, True, known.start)

    def _subscribe(self, new):
        known = self.subscriptions.get(new.id)
        if known is not None:
            same = (known.pattern, known.columns, known.site, known.limit) == (
                new.pattern,
                new.columns,
                new.site,
                new.limit,
            )
            if known.end is not None or not same or new.start not in (Start.NOW, Start.EARLIEST, known.start):
                return Refused
            return Appended(known.number, False, known.start)
        start = {Start.NOW: self.last + 1, Start.EARLIEST: self.lowest}.get(new.start, new.start)
        if start < 0 or start > self.last + 1:
            return Refused
        number = self._next()
        self.subscriptions[new.id] = CatalogEntry(
            new.id, number, new.pattern, new.columns, new.site, new.limit, start
        )
        return Appended(number, True, start)

    def read(self, after, upto):
        """All there is in an interval, number by number: a document, "missing", or nothing."""
        found = {}
        for number in range(after + 1, upto + 1):
            if number <= self.lowest or any(a < number <= b for a, b in self.holes):
                found[number] = "missing"
            elif number in self.documents:
                found[number] = self.documents[number]
        return found

    def held(self):
        return sum(size_of(d.name, d.body) for d in self.documents.values())

    def trim(self, now, limits):
        for number in sorted(self.documents):
            is_old = self.documents[number].at <= now - limits.document_age_s
            if not is_old and self.held() <= limits.document_bytes:
                break
            del self.documents[number]
            self.lowest = number
        without = sorted((n, at, key) for key, (n, _, at) in self.keys.items() if n <= self.lowest)
        while without and (len(without) > limits.keys or without[0][1] <= now - limits.key_age_s):
            del self.keys[without.pop(0)[2]]

    def begin_generation(self, above):
        self.generation += 1
        if above > self.last:
            self.holes.append((self.last, above))
            self.last = above


def flattened(items):
    """Number by number, as ``LogModel.read`` tells it."""
    found = {}
    for item in items:
        if isinstance(item, Missing):
            found.update(dict.fromkeys(range(item.after + 1, item.upto + 1), "missing"))
        else:
            found[item.number] = item
    return found


@dataclass
class HostedModel:
    """One subscription of a peer; entries by number, a gap at each of its numbers."""

    start: int
    frontier: Frontier
    lowest: int
    state: str = "live"
    end: int | None = None
    entries: dict = field(default_factory=dict)
    arrivals: list = field(default_factory=list)
    """(order of arrival, time, last number, size) of the entries as they were given and cut."""
    cursors: dict = field(default_factory=dict)
    ended_at: float | None = None


@dataclass
class ResultModel:
    """A peer's results."""

    hosted: dict = field(default_factory=dict)
    count: int = 0

    def begin(self, name, start, generation):
        self.hosted.setdefault(name, HostedModel(start, Frontier(generation, start), start))

    def results(self, name, entries, frontier, now):
        one = self.hosted[name]
        was = one.frontier.upto
        allowed = frontier.upto if one.end is None else max(was, min(frontier.upto, one.end))
        for entry in entries:
            told = [n for n in range(entry.begin + 1, entry.number + 1) if was < n <= allowed]
            if told:
                self.count += 1
                one.arrivals.append((self.count, now, told[-1], size_of(entry.name, entry.data)))
            for number in told:
                one.entries[number] = (entry.kind, entry.name, entry.data)
        one.frontier = Frontier(frontier.generation, allowed)

    def drain(self, name, end):
        one = self.hosted[name]
        if one.state == "live":
            one.state, one.end = "draining", end

    def finish(self, name, now):
        one = self.hosted[name]
        if one.state != "ended":
            one.ended_at = now
            one.end = one.frontier.upto if one.end is None else min(one.end, one.frontier.upto)
            one.state = "ended"

    def read(self, name, after, upto):
        """Number by number: kind, name and data; what was trimmed is told from the start on."""
        one = self.hosted[name]
        found = dict.fromkeys(range(max(after, one.start) + 1, min(upto, one.lowest) + 1), (Kind.TRIMMED, "", b""))
        found.update({n: told for n, told in one.entries.items() if max(after, one.lowest) < n <= upto})
        return found

    def held(self):
        return sum(size for one in self.hosted.values() for _, _, _, size in one.arrivals)

    def trim(self, now, limits):
        for name, (_, at, number, _) in self._oldest():
            read_by_all = all(number <= upto for upto in self.hosted[name].cursors.values())
            if not read_by_all:
                continue
            if at > now - limits.kept_age_s and self.held() <= limits.kept_bytes:
                break
            self._drop(name, number)
        for name, (_, _, number, _) in self._oldest():
            if self.held() > limits.hard_bytes:
                self._drop(name, number)
        for name, one in list(self.hosted.items()):
            if one.state == "ended" and one.ended_at <= now - limits.kept_age_s and not one.arrivals:
                del self.hosted[name]

    def _oldest(self):
        return sorted(
            ((name, arrival) for name, one in self.hosted.items() for arrival in one.arrivals),
            key=lambda pair: pair[1],
        )

    def _drop(self, name, number):
        one = self.hosted[name]
        one.arrivals.pop(0)
        one.lowest = number
        one.entries = {n: told for n, told in one.entries.items() if n > number}


def told(entries: list[Entry]):
    """Number by number, as ``ResultModel.read`` tells it."""
    return {n: (e.kind, e.name, e.data) for e in entries for n in range(e.begin + 1, e.number + 1)}
