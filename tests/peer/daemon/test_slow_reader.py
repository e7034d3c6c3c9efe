"""A receiver that never reads costs the sender a window of memory, and nobody else anything."""

import trio

from overlay.wire.connection import Connection
from overlay.wire.frames import Open
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern

WINDOW = 200_000


async def deaf(peer, port):
    """Connect as a member, greet, and return the stream: nothing is read from it after that."""
    plain = await trio.open_tcp_stream("127.0.0.1", port)
    stream = trio.SSLStream(plain, peer.credential.client_context(), https_compatible=True)
    await stream.do_handshake()
    return plain, stream


async def test_memory_stays_bounded_and_others_are_served(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        name = (await one.subscribe(Pattern.parse("//b{val}")))["subscription"]
        other = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        permit = two.store_file.hosted(other).configuration
        await network.stop("p2")
        plain, stream = await deaf(two, network.source.port)
        connection = Connection(77, 0.0)
        connection.outbox.put(Open(1, "", other, "//a{cont}", b"", permit, 1, 0, WINDOW))
        await stream.send_all(connection.send(1 << 20, 0.0))
        body = b"<r><a>" + b"x" * 20_000 + b"</a><b>1</b></r>"
        last = 0
        for n in range(100):
            last = (await network.source.publish("source", f"d{n}", f"k{n}", body))["number"]
        wire = network.source.links._wires.get("p2")
        waiting = 0 if wire is None else sum(
            len(getattr(frame, "data", b"")) for queue in wire.connection.outbox._feeds.values() for frame in queue
        )  # fmt: skip
        assert waiting <= WINDOW + 2 * len(body)
        assert len(await rows(one, name, last)) == 100
        await trio.aclose_forcefully(plain)
