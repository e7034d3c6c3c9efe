"""Nothing that arrives from outside, or from a broken member, harms a node."""

import random
import socket
import time

import msgspec
import pytest
import trio

from overlay.dht.contacts import Contact
from overlay.dht.datagrams import KeyRing, NetworkKey, Opened, Refusal, Seal
from overlay.dht.messages import (
    FindNode,
    FindValue,
    Found,
    Nodes,
    Ping,
    Pong,
    Store,
    Stored,
    decode_message_untrusted,
    encode_message,
)
from overlay.dht.records import encode_record
from tests.overlay.dht.network import FAST, KEY, free_port, holds, make_record, open_node, open_nodes, until

CALL = b"c" * 16


class Outsider:
    """A bare socket that says what the test tells it, under whatever key."""

    def __init__(self, key=KEY, seed=1):
        self.rng = random.Random(seed)
        self.id = self.rng.randbytes(20)
        self.seal = Seal(KeyRing(NetworkKey.of(key)), self.rng.randbytes(8))
        self.sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    async def __aenter__(self):
        await self.sock.bind(("127.0.0.1", free_port()))
        return self

    async def __aexit__(self, *_):
        self.sock.close()

    def sealed(self, message):
        payload = message if isinstance(message, bytes) else encode_message(message)
        return self.seal.seal(payload, now=time.time())

    async def say(self, dht, message):
        await self.sock.sendto(self.sealed(message), dht.address)

    async def hear(self, timeout_s=2):
        """Open the next datagram; None if none comes."""
        with trio.move_on_after(timeout_s):
            data, address = await self.sock.recvfrom(9000)
            opened = self.seal.open_untrusted(data, now=time.time())
            assert isinstance(opened, Opened)
            return decode_message_untrusted(opened.payload), address
        return None


async def settle(dht, count):
    await until(lambda: dht.statistics.received >= count)


async def test_a_flood_of_random_datagrams_does_nothing_and_is_counted():
    async with open_nodes(3) as nodes, Outsider() as outsider:
        dht = nodes.alive[0]
        before = dht.statistics
        for i in range(2000):
            data = outsider.rng.randbytes(outsider.rng.randrange(1, 1500))
            await outsider.sock.sendto((b"\x01" if i % 2 else b"") + data, dht.address)
            if i % 100 == 99:
                await settle(dht, before.received + i + 1)
        after = dht.statistics
        assert sum(after.refused.values()) == 2000
        assert set(after.refused) == {Refusal.MALFORMED, Refusal.WRONG_KEY}
        assert (after.sent, after.peers, after.records) == (before.sent, before.peers, before.records)
        assert await nodes.alive[1].put(make_record()) == 2
        assert await dht.get("site", "a") is not None


async def test_a_node_with_a_wrong_key_enters_no_table():
    async with open_nodes(3) as nodes, open_node(key=b"another key, 32 bytes or so ....") as stranger:
        assert await stranger.bootstrap([dht.address for dht in nodes.alive]) == 0
        assert stranger.statistics.peers == 0
        for dht in nodes.alive:
            assert dht.statistics.refused == {Refusal.WRONG_KEY: 2}
            assert dht.statistics.peers == 2
        assert await stranger.put(make_record()) == 0


async def test_a_member_enters_the_table_only_when_it_answers_from_its_address():
    async with open_node() as dht, Outsider() as member:
        await member.say(dht, Ping(CALL, member.id))
        heard = [(await member.hear())[0] for _ in range(2)]
        assert heard[0] == Pong(CALL, dht.node_id)
        assert isinstance(heard[1], Ping)
        assert dht.statistics.peers == 0
        await member.say(dht, Pong(heard[1].call, member.id))
        await until(lambda: dht.statistics.peers == 1)


async def test_a_question_caught_and_sent_on_by_an_outsider_brings_it_into_no_table():
    async with open_node() as dht, Outsider() as member, Outsider(seed=2) as outsider:
        caught = member.sealed(Ping(CALL, member.id))
        await outsider.sock.sendto(caught, dht.address)
        await trio.sleep(2.5 * FAST.timeout_s)
        assert dht.statistics.peers == 0


async def test_replayed_datagrams_are_refused():
    async with open_node() as dht, Outsider() as member:
        datagram = member.sealed(Ping(CALL, member.id))
        for _ in range(3):
            await member.sock.sendto(datagram, dht.address)
        await settle(dht, 3)
        assert dht.statistics.refused == {Refusal.REPLAYED: 2}


@pytest.mark.parametrize("seed", range(3))
async def test_a_member_that_talks_nonsense_changes_nothing(seed):
    async with open_node() as dht, Outsider(seed=seed) as member:
        head = (CALL, member.id)
        good = [
            Ping(*head), Store(*head, encode_record(make_record())), FindNode(*head, bytes(20)),
            FindValue(*head, b"\xff" * 20), Pong(*head), Stored(*head, True), Found(*head, b"x"),
            Nodes(*head, (Contact(member.id, "127.0.0.1", 9),)),
        ]  # fmt: skip
        for _ in range(600):
            payload = bytearray(encode_message(member.rng.choice(good)))
            for _ in range(member.rng.randrange(1, 4)):
                payload[member.rng.randrange(len(payload))] = member.rng.randrange(256)
            dht._node.protocol.datagram_received(member.sealed(bytes(payload)), member.sock.getsockname())
        assert dht.statistics.refused[Refusal.BAD_MESSAGE] > 100
        assert Refusal.FAILED not in dht.statistics.refused
        assert dht.statistics.peers == 0
        await member.say(dht, Ping(b"d" * 16, member.id))
        while (heard := await member.hear()) is not None and heard[0].call != b"d" * 16:
            pass
        assert heard is not None


@pytest.mark.parametrize(
    "payload", [b"", b"\x91" * 8000, b"\xdd\xff\xff\xff\xff", b"\xc1", b"\xd6\xff\xff\xff\xff\xff"]
)
async def test_a_sealed_datagram_of_hostile_structure_is_counted_and_forgotten(payload):
    async with open_node() as dht, Outsider() as member:
        await member.say(dht, payload)
        await settle(dht, 1)
        assert dht.statistics.refused == {Refusal.BAD_MESSAGE: 1}


async def test_a_member_that_claims_our_own_id_is_refused():
    async with open_node() as dht, Outsider() as member:
        await member.say(dht, Ping(CALL, dht.node_id))
        await settle(dht, 1)
        assert dht.statistics.refused == {Refusal.BAD_MESSAGE: 1}


async def test_an_error_while_taking_a_datagram_ends_with_the_datagram(monkeypatch):
    async with open_nodes(2) as nodes, Outsider() as member:
        dht = nodes.alive[0]

        def broken(*_, **__):
            raise RuntimeError("broken")

        with monkeypatch.context() as patch:
            patch.setattr(type(dht._node.store), "offer", broken)
            await member.say(dht, Store(CALL, member.id, b"x"))
            await until(lambda: dht.statistics.refused.get(Refusal.FAILED) == 1)
        assert await nodes.alive[1].put(make_record()) == 1


async def test_a_forged_record_is_refused_on_store():
    forged = msgspec.structs.replace(make_record(), payload=b"forged")
    async with open_node() as dht, Outsider() as member:
        await member.say(dht, Store(CALL, member.id, encode_record(forged)))
        assert (await member.hear())[0] == Stored(CALL, dht.node_id, False)
        true = make_record()
        await member.say(dht, Store(b"d" * 16, member.id, encode_record(true)))
        await until(lambda: holds(dht, true))


async def serve(member, answer, *, task_status=trio.TASK_STATUS_IGNORED):
    """Answer pings, and every other question as the test says."""
    task_status.started()
    while True:
        message, address = await member.hear(timeout_s=60)
        reply = Pong(message.call, member.id) if isinstance(message, Ping) else answer(message)
        await member.sock.sendto(member.sealed(reply), address)


@pytest.mark.parametrize(
    "lie",
    [
        encode_record(msgspec.structs.replace(make_record(revision=9), payload=b"forged")),
        encode_record(make_record("another name", revision=9)),
        encode_record(make_record(revision=9, life_s=-10)),
        b"no record",
    ],
    ids=["forged", "of another name", "expired", "no record"],
)
async def test_a_false_record_is_refused_on_read(lie):
    true = make_record(revision=2)

    def answer(message):
        match message:
            case FindValue():
                return Found(message.call, liar.id, lie)
            case Store():
                return Stored(message.call, liar.id, True)
            case _:
                return Nodes(message.call, liar.id, ())

    async with open_nodes(1) as nodes, Outsider() as liar, trio.open_nursery() as nursery:
        await nursery.start(serve, liar, answer)
        reader = nodes.alive[0]
        assert await reader.bootstrap([liar.sock.getsockname()]) == 1
        assert await reader.get("site", "a") is None
        honest = await nodes.add()
        assert await honest.put(true) >= 1
        assert await reader.get("site", "a") == true
        nursery.cancel_scope.cancel()


async def test_an_answer_from_another_node_than_the_one_asked_counts_for_nothing():
    async with open_node() as dht, Outsider() as member, Outsider(seed=2) as other:
        await member.say(dht, Ping(CALL, member.id))
        await member.hear()
        ping = (await member.hear())[0]
        await other.say(dht, Pong(ping.call, member.id))  # from another address
        await until(lambda: dht.statistics.refused.get(Refusal.UNASKED) == 1)
        await member.say(dht, Pong(ping.call, other.id))  # under another id
        await settle(dht, 3)
        await trio.sleep(0.05)
        assert dht.statistics.peers == 0
