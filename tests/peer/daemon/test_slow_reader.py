"""Who never reads costs the sender a window of memory, and nobody else anything."""

import json
from contextlib import asynccontextmanager

import trio

from overlay.wire.connection import Connection
from overlay.wire.frames import Alive, Open
from peer.daemon import reading
from peer.daemon.control import SOCKET, serve_control
from peer.daemon.controls import peer_controls
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern

LARGE = b"<r><a>" + b"x" * 100_000 + b"</a><b>1</b></r>"
SMALL = b"<r><b>2</b></r>"


@asynccontextmanager
async def deaf(peer, port, asked):
    """Connect as a member that opens a feed, says that it is alive, and reads nothing."""
    plain = await trio.open_tcp_stream("127.0.0.1", port)
    plain.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_RCVBUF, 4096)
    stream = trio.SSLStream(plain, peer.credential.client_context(), https_compatible=True)
    await stream.do_handshake()
    connection = Connection(77, 0.0)
    connection.outbox.put(asked)

    async def stay():
        while True:
            await stream.send_all(connection.send(1 << 20, 0.0))
            await trio.sleep(0.3)
            connection.outbox.put(Alive(0))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(stay)
        yield
        nursery.cancel_scope.cancel()
    await trio.aclose_forcefully(plain)


async def publish(network, body, count, before=0):
    told = {}
    for n in range(before, before + count):
        told = await network.source.publish("source", f"d{n}", f"k{n}", body)
    return told["number"]


def waiting_bytes(box):
    return sum(len(getattr(frame, "data", b"")) for queue in box._feeds.values() for frame in queue)


async def served_beside_a_deaf_one(tmp_path, credit):
    """Publish large documents that a deaf receiver wants, and small ones that it does not; return the outbox."""
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        name = (await one.subscribe(Pattern.parse("//b{val}")))["subscription"]
        other = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        permit = two.store_file.hosted(other).configuration
        await network.stop("p2")
        asked = Open(1, "", other, "//a{cont}", b"", permit, 1, 0, credit)
        async with deaf(two, network.source.port, asked):
            await publish(network, LARGE, 100)
            last = await publish(network, SMALL, 200, before=100)
            assert len(await rows(one, name, last)) == 300
            return network.source.links._wires["p2"].connection.outbox


async def test_a_receiver_that_never_reads_costs_its_credit(tmp_path):
    box = await served_beside_a_deaf_one(tmp_path, credit=500_000)
    assert waiting_bytes(box) <= 500_000 + len(LARGE)


async def test_what_costs_no_credit_does_not_pile_up_either(tmp_path):
    box = await served_beside_a_deaf_one(tmp_path, credit=1 << 30)
    assert waiting_bytes(box) > 0  # the sockets take less than all
    assert box.waiting < 250  # 100 batches in two parts, and not 200 frames that say that there is nothing


async def test_a_command_that_never_reads_is_read_for_no_further_than_it_takes(tmp_path, monkeypatch):
    read = []
    told_of = reading.told_of

    def counted(pattern, entry):
        read.append(len(entry.data))
        return told_of(pattern, entry)

    monkeypatch.setattr(reading, "told_of", counted)
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one = await network.start_peer("p1")
        await one.connected.wait()
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        await nursery.start(serve_control, one.home, peer_controls(one))
        async with await trio.open_unix_socket(str(one.home / SOCKET)) as stream:
            asked = {"do": "entries", "subscription": name, "since": 0, "follow": True}
            await stream.send_all(json.dumps(asked).encode() + b"\n")
            last = await publish(network, LARGE, 60)
            with trio.fail_after(60):
                while one.store_file.frontier(name).upto < last:
                    await trio.sleep(0.05)
            await trio.sleep(0.5)
            assert 0 < sum(read) < 3_000_000  # of six; what the socket holds, and one more
            assert len(await rows(one, name, last)) == 60
        nursery.cancel_scope.cancel()
