"""Feeds of the source that are behind: they get all there is, in turns, and nobody else waits for them."""

from itertools import count

import pytest

from overlay.wire.frames import Batch, Credit, Failed, Frontier, Gap, Open, Opened
from peer.hosting import catch_up
from peer.hosting.catch_up import Body, Lost
from peer.hosting.results import from_document, whole_link
from peer.hosting.source_views import SourceViews
from xmlmatch import Document, Matcher, Pattern

WINDOW = 1 << 30


class Source:
    """Views of a source over a log in memory; what is sent is remembered."""

    generation, lowest = 1, 0

    def __init__(self, documents):
        self.documents, self.sent, self.reads = documents, [], 0
        self.views = SourceViews("source", self, self)
        self._numbers = count(1)

    @property
    def last(self):
        return len(self.documents)

    def bodies(self, after, upto, most_bytes):
        self.reads += 1
        found, size = [], 0
        for number in range(after + 1, upto + 1):
            body = self.documents[number - 1]
            found.append(Lost(number - 1, number) if body is None else Body(number, f"d{number}", body))
            size += 0 if body is None else len(body)
            if size >= most_bytes:
                break
        return found

    def send(self, site, frame):
        self.sent.append(frame)
        return True

    def forbids(self, site, asked):
        return ""

    def open(self, text, after=0, window=WINDOW):
        feed = next(self._numbers)
        self.views.handle("m", Open(feed, "", f"s{feed}", text, b"", b"", 1, after, window))
        return feed

    def publish(self, body):
        self.documents.append(body)
        self.views.published(self.last, f"d{self.last}", body)

    def of(self, feed, kinds=(Batch, Failed, Gap)):
        return [frame for frame in self.sent if frame.feed == feed and isinstance(frame, kinds)]

    def covered(self, feed):
        ends = [
            getattr(frame, "upto", getattr(frame, "number", 0))
            for frame in self.of(feed, (Batch, Failed, Gap, Frontier))
        ]
        return max(ends, default=0)

    def rounds(self, most=10_000):
        """Give turns until nothing is left to send; return how many it took."""
        for taken in range(most):
            if not self.views.has_work:
                return taken
            self.views.pump()
        raise AssertionError("it never comes to an end")


def document(i, size=2_000):
    return f"<r><a><b>{i}</b></a>{'<c/>' * (i % 3)}<t>{'x' * size}</t></r>".encode()


def direct(text, body):
    pattern = Pattern.parse(text)
    parsed = Document.parse(body)
    matches = Matcher([pattern]).match(parsed)
    return from_document(whole_link(pattern), matches, 0, parsed) if len(matches) else None


TEXTS = [f"//a[b{{val}} >= {i}]" for i in range(20)] + ["//c{id}", "//r{cont}", "//nothing"]


def test_all_who_are_behind_get_what_matching_gives_each_document_once():
    documents = [document(i) for i in range(30)]
    source = Source(list(documents))
    feeds = {text: source.open(text) for text in TEXTS}
    source.rounds()
    for text, feed in feeds.items():
        wanted = {n: data for n, body in enumerate(documents, 1) if (data := direct(text, body)) is not None}
        assert [(one.number, one.data) for one in source.of(feed)] == sorted(wanted.items())
        assert source.covered(feed) == len(documents)


def test_a_turn_is_bounded_and_who_is_up_to_date_does_not_wait(monkeypatch):
    parsed = []
    original = Document.parse
    monkeypatch.setattr(
        catch_up.Document, "parse", lambda body, *rest: parsed.append(len(body)) or original(body, *rest)
    )
    source = Source([document(i, 100_000) for i in range(40)])
    fresh = source.open("//a{cont}", after=40)
    behind = [source.open(text) for text in TEXTS]
    assert sum(parsed) <= 700_000  # however many have asked
    parsed.clear()
    source.publish(document(40))
    assert source.covered(fresh) == 41
    assert min(map(source.covered, behind)) < 41
    parsed.clear()
    source.views.pump()
    assert sum(parsed) <= 700_000
    assert source.rounds() > 5
    assert {source.covered(feed) for feed in behind} == {41}


def test_documents_are_parsed_once_for_all_who_are_behind_together(monkeypatch):
    parsed = []
    original = Document.parse
    monkeypatch.setattr(catch_up.Document, "parse", lambda body: parsed.append(body) or original(body))
    source = Source([document(i) for i in range(30)])
    feeds = [source.open(text) for text in TEXTS]  # each that comes is another pattern: begin anew, at most
    parsed.clear()
    source.rounds()
    assert {source.covered(feed) for feed in feeds} == {30}
    assert len(parsed) <= 2 * 30


def test_everybody_has_a_turn_before_anybody_is_done():
    source = Source([document(i, 100_000) for i in range(100)])
    feeds = [source.open("//r{cont}"), source.open("//t{val}")]
    for _ in range(20):
        source.views.pump()
    assert all(0 < source.covered(feed) < 100 for feed in feeds)


def test_a_document_that_cannot_be_read_and_one_that_is_lost_are_said_in_their_place():
    source = Source([document(1), b"<r>", None, document(2)])
    feed = source.open("//a{cont}")
    source.rounds()
    assert [type(one) for one in source.of(feed)] == [Batch, Failed, Gap, Batch]


def test_a_receiver_that_grants_little_gets_little():
    source = Source([document(i, 10_000) for i in range(20)])
    feed = source.open("//r{cont}", window=15_000)
    source.rounds()
    assert len(source.of(feed)) == 2
    source.views.handle("m", Credit(feed, 25_000, 0))
    source.rounds()
    assert len(source.of(feed)) == 3


def nested(depth, size):
    return b"<r>" + b"<a>" * depth + b"x" * size + b"</a>" * depth + b"</r>"


@pytest.mark.parametrize("is_behind", [True, False])
def test_results_that_are_more_than_can_be_sent_are_an_error_and_the_feed_goes_on(is_behind):
    large = nested(200, 400_000)
    source = Source([nested(1, 1), large, nested(1, 2)] if is_behind else [])
    feed = source.open("//a{cont}")
    for body in () if is_behind else (nested(1, 1), large, nested(1, 2)):
        source.publish(body)
    source.rounds()
    assert [type(one) for one in source.of(feed)] == [Batch, Failed, Batch]
    assert "the most is 67,108,864" in source.of(feed)[1].reason
    assert source.of(feed, Opened)
