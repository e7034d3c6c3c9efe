"""Whole documents on a machine: matching them there gives the very bytes that the source would send."""

import random
from itertools import compress

import pytest
from hypothesis import given

from overlay.feeds.items import Item, Kind
from overlay.feeds.serving import Serving
from overlay.wire.frames import Batch, Cancel, Ended, Frontier, Open, Opened
from peer.hosting import relay, results
from peer.hosting.configuration import Configuration, Input, encode
from peer.hosting.history import History, Stretch
from peer.hosting.host import Host
from peer.hosting.outlet import Outlet
from peer.hosting.relay import Rematching, follow, may_be_relayed
from peer.hosting.results import DOCUMENTS, MATCH, Joining, from_document, whole_link
from scenarios.simulation.drawn import simulate
from scenarios.small_documents import PATTERNS, small_document
from tests.strategies import documents, patterns
from xmlmatch import Document, Matcher, Pattern


def direct(pattern, body):
    """Return what the source would send for a document; None for nothing."""
    document = Document.parse(body)
    matches = Matcher([pattern]).match(document)
    return from_document(whole_link(pattern), matches, 0, document) if len(matches) else None


def relayed(number, body):
    """Return what a relay has of a document."""
    return Item(number, Kind.RESULTS, direct(DOCUMENTS, body), name=f"d{number}")


@given(documents(), patterns())
def test_a_document_that_was_relayed_matches_as_the_original_does(body, pattern):
    found = Rematching().of(relayed(3, body), pattern, many=False)
    assert (None if found is None else found.data) == direct(pattern, body)


@given(documents())
def test_a_whole_document_is_what_matching_it_would_give(body):
    made = results.whole_document(Document.parse(body), 3, "d")
    assert (made.number, made.kind, made.name, made.data) == (3, Kind.RESULTS, "d", direct(DOCUMENTS, body))


def test_patterns_matched_together_give_what_each_gives_alone():
    rng = random.Random(5)
    wanted = [Pattern.parse(text) for text in PATTERNS]
    together = Rematching()
    for pattern in wanted:
        together.want(pattern)
    found = 0
    for number in range(1, 40):
        body = small_document(rng)
        if number == 20:
            for pattern in wanted[1::2]:
                together.unwant(pattern.text)
            wanted = wanted[::2]
        for pattern in wanted:
            got = together.of(relayed(number, body), pattern, many=True)
            assert (None if got is None else got.data) == direct(pattern, body)
            found += got is not None
    assert found > 100


def test_a_pattern_that_comes_while_a_document_is_matched_misses_nothing_of_it():
    body = b"<r><a>1</a><b>2</b></r>"
    first, second = Pattern.parse("//a{val}"), Pattern.parse("//b{val}")
    together = Rematching()
    together.want(first)
    assert together.of(relayed(7, body), first, many=True).data == direct(first, body)
    together.want(second)
    assert together.of(relayed(7, body), second, many=True).data == direct(second, body)
    item = relayed(8, body)
    assert set(together.references(item, "r")) == {first.text, second.text}
    third = Pattern.parse("//b{cont}")
    together.want(third)
    assert set(together.references(item, "r")) == {first.text, second.text, third.text}


def test_what_many_read_of_a_document_is_parsed_once(monkeypatch):
    counted, parse = [], Document.parse
    monkeypatch.setattr(results.Document, "parse", lambda body: counted.append(len(body)) or parse(body))
    for body in (b"<r><a>1</a><b>only here</b></r>", b"<r>" + b"<a>1</a>" * 40_000 + b"</r>"):
        for text in ("//a{val}", "//b{val}", "//a{val}"):
            found = results.matched_alone(Pattern.parse(text), 3, "d", body)
            monkeypatch.undo()
            assert (None if found is None else found.data) == direct(Pattern.parse(text), body)
            monkeypatch.setattr(results.Document, "parse", lambda body: counted.append(len(body)) or parse(body))
    assert [size > 300_000 for size in counted] == [False, True, True, True]


def test_what_a_relay_lost_or_could_not_read_goes_on_as_it_is():
    lost, wrong = Item(9, Kind.GAP, after=7), Item(5, Kind.ERROR, b"no XML", name="d")
    assert [Rematching().of(one, Pattern.parse("//a"), many=True) for one in (lost, wrong)] == [lost, wrong]


def test_what_could_feed_a_relay_is_never_fed_by_one():
    assert [may_be_relayed(Pattern.parse(text)) for text in ("/*{cont}", "//*{cont}", "/r{cont}", "//a{val}")] == [
        False, False, True, True,
    ]  # fmt: skip


def test_only_whole_documents_can_be_asked_for_what_matching_gives():
    def asked(pattern):
        outlet = Outlet(pattern, History(0, 0, lambda after, upto, most: Stretch([], upto)), 1, "m0")
        return outlet.open("m1", Open(4, "u", "d", "//b{val}", MATCH, b"", 1, 0, 1000))

    [refused] = asked(Pattern.parse("//a{cont}"))
    assert isinstance(refused, Ended)
    assert refused.why == "forbidden"
    assert asked(DOCUMENTS) == [Opened(4, 0, 0)]
    assert Joining(Pattern.parse("//b{val}"), (DOCUMENTS,)).cuts() == [MATCH]
    assert Joining(DOCUMENTS, (DOCUMENTS,)).cuts() == [b""]


def test_what_nobody_wants_matched_any_more_is_forgotten_however_feeds_end():
    outlet = Outlet(DOCUMENTS, History(0, 0, lambda after, upto, most: Stretch([], upto)), 99, "m0")

    def ask(site, feed, text):
        outlet.open(site, Open(feed, "u", f"d{feed}", text, MATCH, b"", 1, 0, 1000))

    def matched():
        return set(outlet.references([relayed(1, b"<r><a>1</a><b>2</b></r>")], "r")[0])

    ask("m0", 1, "//a{val}")
    ask("m0", 2, "//a{val}")
    ask("m1", 3, "//b{val}")
    outlet.handle("m0", Cancel(1))
    assert matched() == {"//a{val}", "//b{val}"}
    outlet.site_lost("m1")
    assert matched() == {"//a{val}"}
    ask("m0", 2, "//b{val}")  # in its place
    assert matched() == {"//b{val}"}
    outlet.end("gone")
    assert matched() == set()


class Port:
    """Stores at once; what is to be sent is remembered."""

    def __init__(self):
        self.sent, self.kept = [], {}

    def send(self, site, frame):
        self.sent.append((site, frame))
        return True

    def store(self, subscription, items, upto):
        self.kept.setdefault(subscription, []).extend(items)

    def store_together(self, parts, followers=None):
        for part in parts:
            self.store(*part)
        relay, items, upto = parts[0]
        for name, matched in followers.each() if followers else ():
            found = compress(items, matched)
            self.store(
                name, [Item(one.number, Kind.REFERENCE, relay.encode(), name=one.name) for one in found], upto
            )

    def stored(self, subscription, after, upto, most_bytes):
        return Stretch([one for one in self.kept.get(subscription, []) if after < one.number <= upto], upto)

    def had(self, relay, number):
        return self.stored(relay, number - 1, number, 1)

    def forbids(self, site, asked):
        return ""


def test_a_relay_takes_the_other_subscriptions_over_and_lets_them_go_again():
    port = Port()
    host = Host("m0", "source", port, random.Random(1))

    def install(name, text, choices=(), start=0):
        found = Configuration(name, "m0", text, 1, 1, 1, start, 3, choices)
        host.install(found, encode(found), 0.0)

    def by(name):
        return [one.subscription for one in host.subscriptions[name].feeding.current.inputs]

    def serve(after, number, body):
        """Answer as the source would, whoever is fed by it now."""
        for site, frame in list(port.sent):
            if isinstance(frame, Open) and site == "source":
                port.sent.remove((site, frame))
                host.handle(site, Opened(frame.feed, frame.after, 0), 0.0)
                live[frame.feed] = Pattern.parse(frame.query)
        for feed, pattern in live.items():
            data = direct(pattern, body)
            frame = Frontier(feed, after, number) if data is None else Batch(feed, after, number, "d", data, False)
            host.handle("source", frame, 0.0)

    live = {}
    install("s1", "//a{cont}")
    install("s2", "//a{cont}", ((Input("s1", "m0", "//a{cont}"),),))
    serve(0, 1, b"<r><a><b>1</b></a></r>")
    assert (by("s1"), by("s2")) == ([], ["s1"])
    install("r", DOCUMENTS.text, start=1)
    serve(1, 2, b"<r><a><b>2</b></a></r>")
    assert (by("r"), by("s1"), by("s2")) == ([], ["r"], ["r"])
    serve(2, 3, b"<r><b>3</b></r>")
    install("s3", "//a[b]{id}", start=3)
    assert by("s3") == ["r"]
    for name in ("s1", "s2"):
        bodies = {1: b"<r><a><b>1</b></a></r>", 2: b"<r><a><b>2</b></a></r>", 3: b"<r><b>3</b></r>"}
        wanted = {n: data for n, body in bodies.items() if (data := direct(Pattern.parse("//a{cont}"), body))}
        assert port.kept[name][1].kind is Kind.REFERENCE
        followed = [follow(Pattern.parse("//a{cont}"), port.had, one) for one in port.kept[name]]
        assert {one.number: one.data for one in followed} == wanted
    host.withdraw("r", 0.0, end=3)
    host.tick(0.0)
    opened = [frame.downstream for site, frame in port.sent if isinstance(frame, Open) and site == "source"]
    assert {"s1", "s3"} <= set(opened)


def test_runs_with_relays_hold_in_the_simulator():
    outcomes = [simulate(seed) for seed in range(9000, 9004)]
    assert [one.wrong for one in outcomes] == [[]] * 4


def test_a_document_is_matched_once_for_all_who_take_several_together(monkeypatch):
    matched, original = [], relay.document_of
    monkeypatch.setattr(relay, "document_of", lambda item: matched.append(item.number) or original(item))
    together, wanted = Rematching(), [Pattern.parse(text) for text in PATTERNS]
    for pattern in wanted:
        together.want(pattern)
    bodies = {number: small_document(random.Random(number)) for number in range(1, 8)}
    for pattern in wanted:
        for number, body in bodies.items():
            got = together.of(relayed(number, body), pattern, many=True)
            assert (None if got is None else got.data) == direct(pattern, body)
    assert matched == sorted(bodies)
    together.rest()
    together.of(relayed(3, bodies[3]), wanted[0], many=True)
    assert matched[-1] == 3


def test_references_are_to_what_matches_and_mean_what_matching_gives():
    wanted = [Pattern.parse(text) for text in PATTERNS]
    together, found = Rematching(), 0
    for pattern in wanted:
        together.want(pattern)
    for number in range(1, 40):
        body = small_document(random.Random(number))
        item = relayed(number, body)
        references = together.references(item, "r")
        for pattern in wanted:
            one, right = references.get(pattern.text), direct(pattern, body)
            assert (one is None) == (right is None)
            if one is not None:
                assert (one.kind, one.data) == (Kind.REFERENCE, b"r")
                assert follow(pattern, lambda *_, item=item: Stretch([item], item.number), one).data == right
                assert together.matched_bytes > 0
                found += 1
    assert found > 100


@pytest.mark.parametrize("had", [[], [Item(1, Kind.GAP, after=0)]], ids=["nothing", "trimmed"])
def test_a_reference_to_what_is_gone_ends_the_feed_and_is_never_sent(had):
    def lost(item):
        return follow(Pattern.parse("//a{val}"), lambda *_: Stretch(had, 9), item)

    history = History(0, 0, lambda after, upto, most: Stretch([], upto))
    outlet = Outlet(Pattern.parse("//a{val}"), history, 1, "m0", resolve=lost)
    outlet.open("m1", Open(4, "u", "d", "//a{val}", b"", b"", 1, 0, 1000))
    history.add([Item(1, Kind.REFERENCE, b"r")], 1)
    [(site, ended)] = outlet.pump()
    assert (site, ended.why) == ("m1", "lost")
    with pytest.raises(ValueError, match="cannot be sent"):
        Serving(4, 0, 1000).serve([Item(1, Kind.REFERENCE, b"r")], 1)


def test_references_that_are_safe_do_not_stay_in_memory():
    history = History(0, 0, lambda after, upto, most: Stretch([], upto))
    for number in range(1, 50):
        history.add([Item(number, Kind.REFERENCE, b"r")], number)
    assert len(history._recent) == 49
    history.stored_upto(40)
    assert [one.number for one in history._recent] == list(range(41, 50))
