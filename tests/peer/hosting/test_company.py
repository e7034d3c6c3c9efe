"""Those who keep step with a relay are moved as one, and nobody can tell."""

import random
from itertools import compress

import pytest
from msgspec.structs import replace as changed

from overlay.feeds.items import Item, Kind
from overlay.wire.frames import Batch, Cancel, Credit, Ended, Failed, Frontier, Gap, Level, Marked, Open, Opened
from peer.hosting.configuration import Configuration, Input, encode
from peer.hosting.history import Stretch
from peer.hosting.host import Host
from peer.hosting.marks import Marking
from peer.hosting.results import DOCUMENTS, from_document, whole_link
from scenarios.small_documents import PATTERNS, small_document
from xmlmatch import Document, Matcher, Pattern

OTHER = "m1"
MARKING = Marking(b"numbers1")
MARKING.number([Pattern.parse(text).text for text in PATTERNS], 0.0)


def whole(body):
    """Return what the source sends of a document to a relay."""
    document = Document.parse(body)
    return from_document(whole_link(DOCUMENTS), Matcher([DOCUMENTS]).match(document), 0, document)


class Machine:
    """A host, its store, and the source that feeds it. What is stored is on disk when ``commit`` says so. If
    ``is_looked_at`` the host is asked for its subscriptions all the time, so that nobody moves in company."""

    def __init__(self, *, is_looked_at):
        self.host = Host("m0", "source", self, random.Random(1), window=600, recent_bytes=300)
        self.is_looked_at, self.companies, self.steps = is_looked_at, 0, 0
        self.sent, self.waiting, self.kept, self.safe, self.live = [], [], {}, {}, {}

    def send(self, site, frame):
        self.sent.append((site, frame))
        return True

    def store(self, subscription, items, upto):
        self.store_together([(subscription, items, upto)])

    def store_together(self, parts, followers=None):
        self.waiting.append((list(parts), followers))

    def stored(self, subscription, after, upto, most_bytes):
        found = [one for one in self.kept.get(subscription, []) if after < one.number <= upto][:2]
        return Stretch(found, found[-1].number if found else upto)

    def forbids(self, site, asked):
        return ""

    def commit(self, count):
        for _ in range(min(count, len(self.waiting))):
            self.commit_next()

    def commit_next(self):
        parts, followers = self.waiting.pop(0)
        for name, items, upto in parts:
            self.keep(name, items, upto)
            self.host.committed(name, upto)
        relay, items, upto = parts[0]
        if followers is None:
            return
        for name, matched in followers.each():
            found = compress(items, matched)
            refer = [Item(one.number, Kind.REFERENCE, relay.encode(), name=one.name) for one in found]
            self.keep(name, refer, upto)
        self.host.all_committed(followers.names, upto)

    def keep(self, name, items, upto):
        """What is there already, of one that was abandoned and began again, is ignored."""
        safe = self.safe.get(name, 0)
        self.kept.setdefault(name, []).extend(one for one in items if one.number > safe)
        self.safe[name] = max(safe, upto)

    def do(self, what, *told):
        getattr(self, what)(*told)
        self.answer()
        for _ in range(8):  # who reads from the store gets less at a time
            self.host.tick(0.0)
        self.companies += self.host._company is not None
        if self.is_looked_at:
            assert self.host.subscriptions is self.host.hosted

    def answer(self):
        """Open what the source is asked for."""
        while asked := [one for one in self.sent if isinstance(one[1], Open) and one[0] == "source"]:
            for one in asked:
                self.sent.remove(one)
                frame = one[1]
                self.live[frame.feed] = (frame.after, frame.query)
                self.host.handle("source", Opened(frame.feed, frame.after, 0), 0.0)

    def publish(self, kind, number, body):
        for feed, (after, query) in list(self.live.items()):
            if feed not in self.host._feeds:
                del self.live[feed]
                continue
            if kind is Failed:
                frame = Failed(feed, after, number, "d", "no XML")
            elif kind is Gap:
                frame = Gap(feed, after, number)
            elif query == DOCUMENTS.text:
                self.host.numbered(*MARKING.number(self.host.unnumbered(), 0.0))
                frame = Batch(feed, after, number, "d", whole(body), False)
                if number % 5:
                    frame = Marked(
                        feed, after, number, "d", whole(body), False, MARKING.marks(Document.parse(body))
                    )
                    company = self.host._company
                    self.host.handle("source", frame, 0.0)
                    self.live[feed] = (number, query)
                    self.steps += company is not None and company is self.host._company
                    continue
            else:
                pattern, document = Pattern.parse(query), Document.parse(body)
                matches = Matcher([pattern]).match(document)
                data = from_document(whole_link(pattern), matches, 0, document) if len(matches) else None
                frame = Batch(feed, after, number, "d", data, False) if data else Frontier(feed, after, number)
            self.live[feed] = (number, query)
            self.host.handle("source", frame, 0.0)

    def install(self, name, text, epoch, start, generation, choices=()):
        found = Configuration(name, "m0", text, generation, epoch, 1, start, 3, choices)
        self.host.install(found, encode(found), 0.0)

    def withdraw(self, name, end):
        if name in self.host.hosted:
            self.host.withdraw(name, 0.0, end)

    def abandon(self, name):
        if not any(name == part[0] for parts, _ in self.waiting for part in parts):
            self.host.abandon(name)

    def open(self, feed, name, text, after):
        self.host.handle(OTHER, Open(feed, name, "d", text, b"", b"", 1, after, 1 << 20), 0.0)

    def grant(self, feed, total):
        self.host.handle(OTHER, Credit(feed, total, 0), 0.0)

    def cancel(self, feed):
        self.host.handle(OTHER, Cancel(feed), 0.0)

    def level(self, number):
        for feed in self.live:
            self.host.handle("source", Level(feed, number), 0.0)

    def ended(self):
        for feed in self.live:
            self.host.handle("source", Ended(feed, "busy", ""), 0.0)

    def lost(self, site):
        self.host.site_lost(site, 0.0)

    def full(self, is_full):
        self.host.is_full = is_full

    def tick(self, now):
        self.host.tick(now)

    def trim(self, name, lowest):
        if name in self.host.hosted:
            self.host.trimmed(name, min(lowest, self.safe.get(name, 0)))

    def stands(self, *, feeds=True):
        """Say where everybody is, and what everybody can be read."""
        found = {}
        for name, one in self.host.subscriptions.items():
            history, current = one.outlet.history, one.feeding.current
            read, after = [], history.lowest
            while after < history.frontier:
                items, upto = history.read(after, 200)
                read += [(item.number, item.kind, item.data) for item in items]
                assert upto > after
                after = upto
            given = {
                key: (feed.serving.cursor, feed.serving.sent, feed.serving.granted)
                for key, feed in one.outlet.feeds.items()
            }
            covered = current and (current.intake.frontier, current.intake.covered, current.feeds[0].covered)
            found[name] = (
                history.frontier, history.safe, one.committed, one.feeding.frontier, covered,
                feeds and given, read, list(one.feeding.came_by), one.feeding.failovers, len(one.unsafe),
            )  # fmt: skip
        return found

    def told(self):
        """Say what others were sent of each feed, however much of it at a time, and how far they have come."""
        found = {}
        for site, frame in self.sent:
            items, _ = found.get((site, frame.feed), ([], 0))
            if not isinstance(frame, Frontier):
                frame = frame.plain if isinstance(frame, Marked) else frame  # marks are not stored
                items.append(changed(frame, after=0) if isinstance(frame, Batch | Failed) else frame)
            found[site, frame.feed] = items, getattr(frame, "upto", getattr(frame, "number", 0))
        return found

    def stores(self):
        """Say what each was stored, in order."""
        self.commit(len(self.waiting))
        return {name: [(one.number, one.kind, one.data) for one in items] for name, items in self.kept.items()}


def drawn(rng):
    """Return what happens to a machine."""
    names = {f"s{i}": rng.choice(PATTERNS) for i in range(5)}
    out = [("install", name, text, 1, 0, 1) for name, text in names.items()]
    out.append(("install", "r", DOCUMENTS.text, 1, 0, 1))
    number, epoch, feed, relays = 0, 1, 100, 1
    for _ in range(60):
        what = rng.random()
        if what < 0.55:
            number += rng.choice([1, 1, 1, 2])
            kind = rng.choices([Batch, Failed, Gap], [30, 1, 1])[0]
            out.append(("publish", kind, number, small_document(rng)))
        elif what < 0.72:
            out.append(("commit", rng.randrange(1, 6)))
        elif what < 0.76:
            name = f"s{len(names)}"
            names[name] = rng.choice(PATTERNS)
            out.append(("install", name, names[name], 1, rng.choice([number, number // 2]), 1))
        elif what < 0.79:
            epoch += 1
            name = rng.choice(list(names))
            other = rng.choice(list(names))
            choices = () if other == name else ((Input(other, "m0", names[other]),),)
            choices = choices if names[other] == names[name] and other < name else ()
            out.append(("install", name, names[name], epoch, 0, 1, choices))
        elif what < 0.82:
            out.append(("withdraw", rng.choice([*names, *names, "r"]), rng.choice([0, number])))
        elif what < 0.83:
            out.append(("abandon", rng.choice(list(names))))
        elif what < 0.86:
            feed += 1
            name = rng.choice(list(names))
            out.append(("open", feed, name, names[name], rng.randrange(number + 1)))
        elif what < 0.89:
            out.append(rng.choice([("grant", rng.randrange(100, feed + 1), 9000), ("cancel", feed)]))
        elif what < 0.91:
            out.append(("level", rng.randrange(4)))
        elif what < 0.92:
            out.append(("ended",))
        elif what < 0.93:
            out.append(("lost", rng.choice([OTHER, "source"])))
        elif what < 0.95:
            out.append(("full", rng.random() < 0.5))
        elif what < 0.96:
            out.append(("trim", rng.choice(list(names)), rng.randrange(number + 1)))
        elif what < 0.965:
            relays += 1
            out.append(("install", f"r{relays}", DOCUMENTS.text, 1, number, 1))
        else:
            out.append(("tick", rng.random() * 200))
    out.append(("tick", 0.0))
    return out + [("publish", Batch, number + i, small_document(rng)) for i in (1, 2, 3)]


@pytest.mark.parametrize("seed", range(150))
def test_in_company_everybody_comes_to_where_it_would_have_come_by_itself(seed):
    rng = random.Random(seed)
    together, apart = Machine(is_looked_at=False), Machine(is_looked_at=True)
    for what, *told in drawn(rng):
        for one in (together, apart):
            one.do(what, *told)
        if rng.random() < 0.1:
            assert together.stands(feeds=False) == apart.stands(feeds=False)
    for one in (together, apart):
        one.full(False)
        for _ in range(30):
            one.do("tick", 500.0)
    assert together.told() == apart.told()
    assert together.stores() == apart.stores()
    assert together.stands() == apart.stands()


def test_in_most_draws_there_is_a_company():
    found = []
    for seed in range(40):
        machine = Machine(is_looked_at=False)
        for what, *told in drawn(random.Random(seed)):
            machine.do(what, *told)
        found.append((machine.companies, machine.steps))
    assert sum(companies > 10 for companies, _ in found) > 20
    assert sum(steps > 3 for _, steps in found) > 20
