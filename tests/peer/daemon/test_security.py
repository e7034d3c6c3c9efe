"""Who is not a member, or exceeds its role, gets nowhere; each attempt is counted or logged."""

import ssl
from datetime import UTC, datetime

import msgspec
import pytest
import trio

from overlay.identity import Address, create_network, sign
from overlay.wire.connection import Connection
from overlay.wire.frames import Ask, Ended, Open, Opened
from peer.daemon.feed_refusals import COUNTED_AS, FeedRefusals
from peer.daemon.links import Links
from peer.daemon.questions import NoAnswer, Questions
from peer.hosting.configuration import Input, decode_untrusted, encode
from tests.peer.daemon.network import live_network
from xmlmatch import Pattern


class Ear:
    """Hears what comes over a member's links, and does nothing."""

    def __init__(self):
        self.frames, self.lost_sites = [], []
        self.is_up = trio.Event()
        self.questions = None

    def up(self, member):
        self.is_up.set()

    def lost(self, site):
        self.lost_sites.append(site)

    def told(self):
        """Nothing waits for this."""

    def heard(self, member, frames):
        self.frames += frames
        for frame in frames:
            if self.questions is not None and type(frame).__name__ == "Answer":
                self.questions.answered(member.site, frame)


async def as_member(nursery, peer, addresses):
    """Speak with the identity of a peer, but without its manners."""
    ear = Ear()

    async def find(site):
        return addresses[site]

    links = Links(peer.credential, ear, find)
    ear.questions = Questions(links.send)
    await nursery.start(links.serve, "127.0.0.1", 0)
    return ear, links


async def in_place_of(nursery, stopped, other):
    """Connect to a peer with the identity of one that has stopped."""
    ear, links = await as_member(nursery, stopped, {other.site: (Address("127.0.0.1", other.port),)})
    links.dial(other.site)
    with trio.fail_after(5):
        await ear.is_up.wait()
    return ear, links


async def two_peers(network):
    one, two = await network.start_peer("p1"), await network.start_peer("p2")
    for peer in (one, two):
        await peer.connected.wait()
    return one, two


async def handshake_and_read(stream):
    """Speak first, and read until the other side ends it."""
    await stream.do_handshake()
    await stream.send_all(b"x" * 100)
    while await stream.receive_some(100):
        pass
    raise trio.BrokenResourceError("it was closed")


async def test_who_has_no_certificate_does_not_get_past_the_handshake(tmp_path):
    async with live_network(tmp_path) as network:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        plain = await trio.open_tcp_stream("127.0.0.1", network.source.port)
        stream = trio.SSLStream(plain, context, https_compatible=True)
        with trio.fail_after(5), pytest.raises(trio.BrokenResourceError):
            await handshake_and_read(stream)
        await trio.aclose_forcefully(plain)
        assert sum(network.source.links.refused.values()) == 1
        assert network.source.links.sites == []


async def test_a_member_of_another_network_is_refused(tmp_path):
    async with live_network(tmp_path / "one") as network, trio.open_nursery() as nursery:
        other = create_network(tmp_path / "other", "other", datetime.now(UTC))
        stranger = type("Stranger", (), {"credential": other.credential})
        address = network.source.credential.settings.source
        ear, links = await as_member(nursery, stranger, {"source": address})
        links.dial("source")
        with trio.fail_after(5):
            while not ear.lost_sites:
                await trio.sleep(0.05)
        assert not ear.is_up.is_set()
        assert network.source.links.sites == []
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", bytes(500), b"\x16\x03\x01" + b"\xff" * 300])
async def test_random_bytes_on_the_port_do_nothing(tmp_path, data):
    async with live_network(tmp_path) as network:
        stream = await trio.open_tcp_stream("127.0.0.1", network.source.port)
        await stream.send_all(data)
        with trio.move_on_after(6):
            while await stream.receive_some(1000):
                pass
        await stream.aclose()
        told = await network.source.publish("source", "d", "k", b"<a/>")
        assert told["number"] == 1


async def test_a_subscriber_cannot_publish(tmp_path):
    async with live_network(tmp_path) as network:
        one, _ = await two_peers(network)
        with pytest.raises(NoAnswer, match="publisher"):
            await one.publish("d", "k", b"<a/>")
        assert network.source.status()["last"] == 0


async def test_nobody_unsubscribes_for_others(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await two_peers(network)
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        with pytest.raises(NoAnswer, match="is not a subscription of p2"):
            await two.unsubscribe(name)


async def test_a_feed_that_no_configuration_names_is_refused(tmp_path, caplog):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await two_peers(network)
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//zebra{val}")))["subscription"]
        permit = two.store_file.hosted(second).configuration
        await network.stop("p2")
        ear, links = await in_place_of(nursery, two, one)
        wished = encode(with_choice(decode_untrusted_permit(permit), Input(first, "p1", "//a{cont}")))
        forged = sign(two.credential.signer, "configuration", wished)
        assert decode_untrusted_permit(forged).names(first, "p1")
        tries = [
            Open(1, first, second, "//zebra{val}", b"", permit, 1, 0, 1 << 20),
            Open(2, first, second, "//a{cont}", b"", permit, 1, 0, 1 << 20),
            Open(3, first, second, "//zebra{val}", b"", forged, 1, 0, 1 << 20),
            Open(4, first, second, "//a{cont}", b"", b"rubbish", 1, 0, 1 << 20),
            Open(5, first, "somebody", "//a{cont}", b"", permit, 1, 0, 1 << 20),
        ]
        for frame in tries:
            links.send("p1", frame)
        with trio.fail_after(5):
            while len(ear.frames) < len(tries) + 1:
                await trio.sleep(0.05)
        ended = [frame for frame in ear.frames if isinstance(frame, Ended)]
        assert sorted(frame.feed for frame in ended) == [1, 2, 3, 4, 5]
        assert {frame.why for frame in ended} == {"forbidden"}
        reasons = {frame.feed: frame.text for frame in ended}
        assert reasons[1] == f"it does not name {first}"
        assert reasons[2] == reasons[5] == "the permit is another's"
        assert "source" in reasons[3]  # it lacks the role that signs
        assert one.status()["refused"][COUNTED_AS] == 5
        (logged,) = [record for record in caplog.records if record.message == "feed refused"]
        assert (logged.levelname, logged.site, logged.subscription) == ("WARNING", "p2", second)
        assert logged.reason == reasons[1]
        nursery.cancel_scope.cancel()


async def test_a_permit_of_an_epoch_that_is_over_is_refused_and_so_is_one_that_a_newer_has_replaced(tmp_path):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await two_peers(network)
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        permits = [two.store_file.hosted(second).configuration]
        await network.stop("p2")
        ear, links = await in_place_of(nursery, two, one)
        for epoch in (1, 2):
            await answer_to(ear, links, Open(epoch, first, second, "//a{cont}", b"", permits[-1], 1, 0, 1 << 20))
            assert (await network.source.adopt(epoch - 1, []))["epoch"] == epoch
            permits.append(network.source.catalog._signed[second])
            with trio.fail_after(5):
                while one.permits.epoch < epoch:
                    await trio.sleep(0.02)
        tries = [Open(3 + i, first, second, "//a{cont}", b"", permits[i], 1, 0, 1 << 20) for i in (2, 0, 1)]
        opened, *refused = [await answer_to(ear, links, frame) for frame in tries]
        assert isinstance(opened, Opened)
        assert [frame.why for frame in refused] == ["forbidden"] * 2
        assert refused[0].text == "the permit is of epoch 0; it is epoch 2 now"
        assert refused[1].text == "a newer permit has been seen"
        assert one.status()["refused"][COUNTED_AS] == 2
        nursery.cancel_scope.cancel()


async def test_the_source_counts_and_logs_the_feeds_that_it_refuses(tmp_path, caplog):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await two_peers(network)
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//b{cont}")))["subscription"]
        permit = one.store_file.hosted(first).configuration
        await network.stop("p2")
        ear, links = await in_place_of(nursery, two, network.source)
        await answer_to(ear, links, Open(1, "", first, "//a{cont}", b"", permit, 1, 0, 1 << 20), "source")
        await answer_to(ear, links, Open(2, "", second, "//b{cont}", b"", permit, 1, 0, 1 << 20), "source")
        assert network.source.status()["refused"][COUNTED_AS] == 2
        (logged,) = [record for record in caplog.records if record.message == "feed refused"]
        assert (logged.site, logged.subscription) == ("p2", first)
        assert logged.reason == f"{first} is not a subscription of p2"
        nursery.cancel_scope.cancel()


async def answer_to(ear, links, asked, site="p1"):
    """Open a feed; return the frame that says whether it is."""
    links.send(site, asked)
    with trio.fail_after(5):
        while True:
            for frame in ear.frames:
                if isinstance(frame, Opened | Ended) and frame.feed == asked.feed:
                    return frame
            await trio.sleep(0.02)


def test_of_a_machine_that_asks_and_asks_few_refusals_are_logged_and_all_counted(caplog):
    now, counted = [0.0], {}
    refusals = FeedRefusals(counted, clock=lambda: now[0])
    asked = Open(1, "u", "d" * 1000, "//a{cont}", b"", b"", 1, 0, 1)
    for _ in range(100):
        assert refusals.noted("p1", asked, "no") == "no"
        now[0] += 1
    assert refusals.noted("p2", asked, "no") == "no"
    assert refusals.noted("p2", asked, "") == ""
    assert counted == {COUNTED_AS: 101}
    assert [record.left_out for record in caplog.records] == [0] + [9] * 9 + [0]
    assert {len(record.subscription) for record in caplog.records} == {300}


def decode_untrusted_permit(permit):
    """Look into a permit without checking it."""
    return decode_untrusted(msgspec.msgpack.decode(permit)[-1])


def with_choice(configuration, wished):
    """Make a configuration that names what its owner would like."""
    return msgspec.structs.replace(configuration, choices=((wished,),), revision=999)


async def test_a_peer_cannot_tell_another_how_it_is_fed(tmp_path):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await two_peers(network)
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        permit = one.store_file.hosted(name).configuration
        await network.stop("p2")
        ear, links = await in_place_of(nursery, two, one)
        with pytest.raises(NoAnswer, match="source"):
            await ear.questions.ask("p1", "configure", [permit])
        with pytest.raises(NoAnswer, match="source"):
            await ear.questions.ask("p1", "withdrawn", {"subscription": name, "end": 5})
        assert name in one.host.subscriptions
        links.send("p1", Ask(99, "configure", b"\xc1"))
        await trio.sleep(0.2)
        assert one.links.sites == ["p2", "source"]
        nursery.cancel_scope.cancel()


async def test_an_older_configuration_is_not_installed(tmp_path):
    async with live_network(tmp_path) as network:
        one, _ = await two_peers(network)
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        signed = one.store_file.hosted(name).configuration
        found = decode_untrusted_permit(signed)
        assert one.host.install(found, signed, trio.current_time()) is False


async def test_a_revoked_peer_is_cut_off_everywhere(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await two_peers(network)
        await one.subscribe(Pattern.parse("//a{cont}"))
        await two.subscribe(Pattern.parse("//a{cont}"))
        await network.source.publish("source", "d", "k", b"<a><b/></a>")
        with trio.fail_after(10):
            while "p2" not in one.links.sites:
                await trio.sleep(0.05)
            await network.source.revoke("p2")
            while "p2" in one.links.sites or "p2" in network.source.links.sites:
                await trio.sleep(0.05)
        assert one.links.revocations.number == network.source.links.revocations.number == 1
        await trio.sleep(1)
        assert network.source.links.sites == ["p1"]
        with pytest.raises(NoAnswer, match="p1 is a member already"):
            network.source.invite("p1", ["subscriber"], 1)
        assert network.source.invite("p2", ["subscriber"], 1)["token"]


async def test_the_number_of_the_list_rides_in_keep_alives(tmp_path, monkeypatch):
    async with live_network(tmp_path) as network:
        one, _ = await two_peers(network)
        monkeypatch.setattr(network.source, "tell", lambda site, what, body: None)
        await network.source.revoke("p2")
        with trio.fail_after(10):
            while one.links.revocations.number < 1:
                await trio.sleep(0.05)
        assert one.links.revocations.sites["p2"].number == 1


GOOD = {
    "subscription": "x", "pattern": "//a{val}", "columns": msgspec.msgpack.encode([(0, "val")]), "start": "now",
    "limit": 1,
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("subscribe", GOOD | {"limit": "x"}),
        ("subscribe", GOOD | {"limit": -3}),
        ("subscribe", GOOD | {"limit": 2**63}),
        ("subscribe", GOOD | {"start": "tomorrow"}),
        ("subscribe", GOOD | {"start": -1}),
        ("subscribe", GOOD | {"subscription": ""}),
        ("subscribe", GOOD | {"pattern": "//a["}),
        ("subscribe", GOOD | {"pattern": "//a[b='1'][b='2'][.='1'][.='2']"}),
        ("subscribe", GOOD | {"columns": b"\xc1"}),
        ("subscribe", GOOD | {"columns": msgspec.msgpack.encode([(7, "val")])}),
        ("subscribe", []),
        ("greet", {"addresses": ["nonsense"], "capacity": None}),
        ("greet", {"addresses": [], "capacity": 2**63}),
        ("publish", {"name": 5, "key": "k", "body": b"<a/>"}),
        ("unsubscribe", {"subscription": None}),
        ("anything", None),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused_and_the_source_goes_on(tmp_path, what, body):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1", ("subscriber", "publisher"))
        await one.connected.wait()
        before = network.source.status()["last"]
        with pytest.raises(NoAnswer):
            await one.questions.ask("source", what, body)
        assert network.source.status()["last"] == before
        await network.stop("source")
        await network.start_source()
        assert (await network.source.publish("source", "d", "k", b"<a/>"))["number"] == before + 1


async def test_an_answer_that_cannot_be_read_harms_nobody(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        one._told_by_source = lambda what, body: object()
        with pytest.raises(NoAnswer):
            await network.source.questions.ask("p1", "configure", [])
        assert network.source.links.sites == ["p1"]


async def test_what_is_too_large_to_be_sent_is_refused_where_it_is_asked(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1", ("publisher",))
        await one.connected.wait()
        body = b"<a>" + b"x" * 400_000 + b"</a>"
        assert (await one.publish("large", "k", body))["number"] == 1
        with pytest.raises(
            NoAnswer, match=r"big[.]xml: it is larger than 16,711,680 bytes, the most that a document"
        ):
            await one.publish("big.xml", "k2", bytes(17 << 20))
        with pytest.raises(NoAnswer, match=r"big[.]xml: it is larger than 16,711,680 bytes"):
            await network.source.publish("source", "big.xml", "k2", bytes(17 << 20))
        with pytest.raises(NoAnswer, match="bytes to be sent at once"):
            await one.ask_source("anything", bytes(17 << 20))
        assert one.links.sites == ["source"]


async def revoked_peer(network):
    """Revoke p2, and wait until it knows."""
    one, two = await two_peers(network)
    await two.subscribe(Pattern.parse("//a{cont}"))
    await network.source.revoke("p2")
    with trio.fail_after(5):
        while not two.membership.is_revoked:
            await trio.sleep(0.05)
    return one, two


async def test_a_revoked_peer_learns_that_it_is_and_fails_at_once(tmp_path, caplog):
    async with live_network(tmp_path) as network:
        _, two = await revoked_peer(network)
        with trio.fail_after(1), pytest.raises(NoAnswer, match="was revoked; ask for a new invitation"):
            await two.subscribe(Pattern.parse("//b{val}"))
        told = two.status()
        assert told["is_revoked"]
        assert "was revoked" in told["trouble"]
        await network.stop("p2")
        two = await network.start_peer("p2")  # also one that is started anew
        with trio.fail_after(5), pytest.raises(NoAnswer, match="was revoked"):
            await two.ask_source("last", None)
        assert sum(record.message == "this machine was revoked" for record in caplog.records) == 2


async def test_a_revoked_peer_dials_rarely_and_its_refusals_do_not_fill_the_log(tmp_path, caplog):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        _, two = await revoked_peer(network)
        reason = "site p2: it is revoked"
        before = network.source.links.refused[reason]
        for _ in range(20):
            two.links.dial("source")
            await trio.sleep(0.05)
        assert network.source.links.refused[reason] == before
        await network.stop("p2")
        ear, links = await as_member(nursery, two, {"source": network.source.credential.settings.source})
        for _ in range(5):  # one without manners
            links._resting.reached("source")
            links.dial("source")
            with trio.fail_after(5):
                while links.is_dialling("source"):
                    await trio.sleep(0.05)
        assert network.source.links.refused[reason] >= before + 5
        logged = [one for one in caplog.records if getattr(one, "reason", "") == reason]
        assert len(logged) == 1
        assert {type(frame).__name__ for frame in ear.frames} == {"Hello", "Bye"}
        nursery.cancel_scope.cancel()


async def test_what_a_revoked_peer_says_after_its_dismissal_is_not_looked_at(tmp_path):
    async with live_network(tmp_path) as network:
        _, two = await revoked_peer(network)
        await network.stop("p2")
        plain = await trio.open_tcp_stream("127.0.0.1", network.source.port)
        stream = trio.SSLStream(plain, two.credential.client_context(), https_compatible=True)
        connection = Connection(1, trio.current_time())
        connection.outbox.put(Ask(1, "last", msgspec.msgpack.encode(None)))
        frames = []
        with trio.fail_after(5):
            await stream.send_all(connection.send(1 << 20, 0.0))
            while data := await stream.receive_some(1 << 16):
                frames += connection.receive(bytes(data), 0.0)
        assert [type(frame).__name__ for frame in frames] == ["Hello", "Bye"]
        await trio.aclose_forcefully(plain)
        assert network.source.links.sites == ["p1"]
