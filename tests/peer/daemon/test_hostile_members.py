"""Whatever a member or a stranger sends costs it its connection at most: source and peers go on for all others."""

import random
import ssl

import msgspec
import pytest
import trio

from overlay.identity import Address
from overlay.wire.frames import (
    Alive,
    Answer,
    Ask,
    Batch,
    Calm,
    Cancel,
    Content,
    Credit,
    Ended,
    Failed,
    Frontier,
    Gap,
    Level,
    Open,
    Opened,
    encode_body,
)
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_security import as_member, two_peers
from xmlmatch import Pattern

HUGE = (1 << 62) - 1
QUERIES = ["//a{cont}", "//a", "//a[", "", "//b{val}", "/" * 500, "//a" + "[b" * 300, "//a{cont}\0"]
QUESTIONS = [
    "greet", "drain", "address", "last", "volume", "revocations", "dht_key", "renew", "plan_state", "snapshot",
    "snapshot_part", "proposal_part", "adopt", "publish", "subscribe", "trace", "unsubscribe", "space_x",
    "configure", "spaces", "withdrawn", "your_revocations",
]  # fmt: skip


class OddFrames:
    """Frames that no honest machine sends, from a seed; some of them name what is there."""

    def __init__(self, seed, first, second, permit):
        self._random = random.Random(seed)
        self._first, self._second, self._permit = first, second, permit

    def frame(self):
        kinds = [self._open, self._open, self._of_receiver, self._of_sender, self._ask, self._other]
        return self._random.choice(kinds)()

    def mangled(self):
        """A frame's body of which a few bytes are others."""
        body = bytearray(encode_body(self.frame()))
        for _ in range(self._random.randrange(1, 4)):
            at = self._random.randrange(len(body))
            body[at : at + self._random.randrange(3)] = self._random.choice(
                [b"", b"\xff\xfe", b"\xa2\xff", b"\xc1"]
            )
        return bytes(body) or b"\xc1"

    def _number(self):
        return self._random.choice([0, 1, 2, 3, 5, HUGE - 1, self._random.randrange(100)])

    def _open(self):
        pick, bad = self._random.choice, self._random.randbytes(20)
        links = [b"", b"match", bad, msgspec.msgpack.encode([(0, 0, 1, True, True, True)]),
                 msgspec.msgpack.encode([[0] * 6] * 5000)]  # fmt: skip
        permits = [self._permit, self._permit, b"", bad, self._permit[:-1], self._permit + b"x"]
        return Open(
            pick([1, 2, 3, 9]), pick(["", self._first, self._second, "x"]), pick([self._second, self._first, "y"]),
            pick(QUERIES), pick(links), pick(permits), pick([0, 1, 1, 1, 2, HUGE]), self._number(),
            pick([0, 1, 1 << 20, HUGE]),
        )  # fmt: skip

    def _of_receiver(self):
        feed = self._random.randrange(5)
        return self._random.choice([Credit(feed, self._number(), self._number()), Cancel(feed)])

    def _of_sender(self):
        feed, after = self._random.randrange(5), self._number()
        end = after + self._random.choice([1, 2, 100]) if after < 200 else HUGE
        data = self._random.randbytes(self._random.choice([0, 1, 100]))
        return self._random.choice([
            Batch(feed, after, end, "n", data, self._random.random() < 0.3), Frontier(feed, after, end),
            Gap(feed, after, end), Failed(feed, after, end, "n", "r"), Opened(feed, after, self._number()),
            Level(feed, self._number()), Ended(feed, "busy", "x"),
        ])  # fmt: skip

    def _ask(self):
        bodies = [
            b"", b"\xc0", b"\xc1", b"\xa2\xff\xfe", self._random.randbytes(10), b"\x91" * 5000,
            msgspec.msgpack.encode({}), msgspec.msgpack.encode({"subscription": self._second, "document": 10**15}),
        ]  # fmt: skip
        return Ask(self._random.randrange(5), self._random.choice(QUESTIONS), self._random.choice(bodies))

    def _other(self):
        body = self._random.choice(
            [b"", self._random.randbytes(8), b"\xa2\xff\xfe", msgspec.msgpack.encode([1, 2])]
        )
        return self._random.choice([
            Answer(self._random.randrange(5), ok=self._random.random() < 0.5, body=body),
            Content(self._random.choice(["", "market", "market@1"]), body), Alive(HUGE), Calm(HUGE, 1.0),
        ])  # fmt: skip


class Hostile:
    """A member without manners, connected to one machine."""

    def __init__(self, links, site):
        self._links, self._site = links, site

    async def meet(self):
        with trio.fail_after(20):
            while self._site not in self._links.sites:
                self._links.dial(self._site)
                await trio.sleep(0.01)

    async def say(self, frame):
        await self.meet()
        self._links.send(self._site, frame)

    async def say_bytes(self, body):
        """Send what would never leave a daemon of ours."""
        await self.meet()
        wire = self._links._wires[self._site]
        wire.connection.outbox._control.append(body)
        wire.connection.outbox._control_bytes += len(body)
        wire.stir()

    async def until_hung_up(self, wire):
        with trio.fail_after(20):
            while self._links._wires.get(self._site) is wire:
                await trio.sleep(0.01)

    @property
    def wire(self):
        return self._links._wires[self._site]


async def hostile(nursery, network, stopped, target):
    port = network.source.port if target == "source" else network.peers[target].port
    _, links = await as_member(nursery, stopped, {target: (Address("127.0.0.1", port),)})
    enemy = Hostile(links, target)
    await enemy.meet()
    return enemy


async def works(network, peer, subscription, key):
    """See that what is published still arrives."""
    with trio.fail_after(30):
        told = await network.source.publish("source", "d", key, b"<r><a>2</a></r>")
        assert told["number"] in await rows(peer, subscription, told["number"])


@pytest.mark.parametrize("target", ["source", "p1"])
async def test_a_frame_with_text_that_is_no_utf_8_ends_its_connection_only(tmp_path, target):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await two_peers(network)
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        await network.stop("p2")
        enemy = await hostile(nursery, network, two, target)
        wire = enemy.wire
        await enemy.say_bytes(b"\x92\x03\xa2\xff\xfe")
        await enemy.until_hung_up(wire)
        await works(network, one, first, "k")
        attacked = network.source if target == "source" else one
        assert any("malformed frame" in reason for reason in attacked.status()["refused"])
        nursery.cancel_scope.cancel()


async def test_what_nobody_expected_ends_the_connection_it_came_over_and_is_counted(tmp_path, caplog):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await two_peers(network)
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        await network.stop("p2")
        enemy = await hostile(nursery, network, two, "source")
        handle = network.source.views.handle

        def falls_over(site, frame):
            if site == "p2":
                raise ZeroDivisionError
            handle(site, frame)

        network.source.views.handle = falls_over
        wire = enemy.wire
        await enemy.say(Cancel(1))
        await enemy.until_hung_up(wire)
        await works(network, one, first, "k")
        assert network.source.status()["refused"] == {"it failed here: ZeroDivisionError": 1}
        assert any(record.exc_info and record.site == "p2" for record in caplog.records)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("target", ["source", "p1"])
async def test_odd_frames_of_a_member_do_not_keep_a_machine_from_its_work(tmp_path, target):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one, two = await two_peers(network)
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        permit = two.store_file.hosted(second).configuration
        await works(network, two, second, "k0")
        await network.stop("p2")
        enemy = await hostile(nursery, network, two, target)
        odd = OddFrames(7, first, second, permit)
        for n in range(800):
            await enemy.say(odd.frame())
            if n % 50 == 0:
                await trio.sleep(0.01)
        for _ in range(80):
            await enemy.say_bytes(odd.mangled())
            await trio.sleep(0.01)  # so that the next comes over a new connection
        await enemy.meet()
        await works(network, one, first, "k1")
        assert one.store_file.frontier(first).upto == network.source.status()["last"]
        nursery.cancel_scope.cancel()


async def _throw(port, data):
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    async with stream:
        try:
            await stream.send_all(data)
            await stream.send_eof()
            with trio.move_on_after(5):
                while await stream.receive_some(1000):
                    pass
        except trio.BrokenResourceError:
            pass


async def _throw_within_tls(port, data):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    plain = await trio.open_tcp_stream("127.0.0.1", port)
    stream = trio.SSLStream(plain, context, https_compatible=True)
    try:
        with trio.move_on_after(5):
            await stream.do_handshake()
            await stream.send_all(data)
            while await stream.receive_some(1000):
                pass
    except trio.BrokenResourceError:
        pass
    await trio.aclose_forcefully(plain)


async def test_random_bytes_of_strangers_on_any_port_do_nothing(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        rng = random.Random(3)
        ports = [network.source.port, network.source.enrolment_port, one.port]
        async with trio.open_nursery() as nursery:
            for port in ports:
                for size in (1, 5, 100, 5000):
                    body = rng.randbytes(size)
                    nursery.start_soon(_throw, port, body)
                    nursery.start_soon(_throw, port, b"\x16\x03\x01" + size.to_bytes(2) + body)
                    nursery.start_soon(_throw_within_tls, port, body)
                    nursery.start_soon(_throw_within_tls, port, size.to_bytes(4) + body)
        await works(network, one, name, "k")
        await network.join("p2")
        assert "source" in one.links.sites
