"""TLS over a real socket: what is sent arrives, also both ways at once, and every end is told as such."""

import os
import random
import socket
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest
import trio

from peer.daemon.tls_stream import TlsStream
from tests.overlay.identity.networks import Net

MOST = 1 << 16


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    return Net(tmp_path_factory.mktemp("net"), now=datetime.now(UTC))


@asynccontextmanager
async def pair():
    """Two sockets that are connected, with little room between them."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    async with listeners[0] as listener:
        one = await trio.open_tcp_stream("127.0.0.1", listener.socket.getsockname()[1])
        other = await listener.accept()
    for stream in (one, other):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 20_000)
    async with one, other:
        yield one, other


@asynccontextmanager
async def greeted(net):
    """Two ends that have shaken hands, and the sockets below."""
    b = net.join(f"m{random.randrange(1 << 40)}")
    async with pair() as (one, other):
        client, server = TlsStream(one, b.client_context()), TlsStream(other, net.source.server_context())
        with trio.fail_after(10):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.do_handshake)
                nursery.start_soon(server.do_handshake)
        now = datetime.now(UTC)
        assert b.peer(client.certificate(), now, net.revocations) == net.source.member
        assert net.source.peer(server.certificate(), now, net.revocations) == b.member
        yield client, server, one, other


async def received(stream, size):
    got = bytearray()
    while len(got) < size:
        data = await stream.receive_some(MOST)
        assert data, "it ended early"
        got += data
    return bytes(got)


async def test_everything_arrives_both_ways_at_once_however_little_room_there_is(net):
    rng = random.Random(1)
    sent = [[rng.randbytes(rng.choice([1, 100, 16_384, 16_385, 500_000])) for _ in range(20)] for _ in range(2)]
    got = [b"", b""]

    async def send(stream, parts):
        for part in parts:
            await stream.send_all(part)

    async def receive(stream, which):
        got[which] = await received(stream, sum(map(len, sent[which])))

    with trio.fail_after(30):
        async with greeted(net) as (client, server, *_), trio.open_nursery() as nursery:
            nursery.start_soon(send, client, sent[0])
            nursery.start_soon(send, server, sent[1])
            nursery.start_soon(receive, server, 0)
            nursery.start_soon(receive, client, 1)
    assert got == [b"".join(parts) for parts in sent]


async def test_no_more_is_handed_out_than_about_what_was_asked_for(net):
    with trio.fail_after(10):
        async with greeted(net) as (client, server, *_):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(client.send_all, bytes(200_000))
                sizes = []
                while sum(sizes) < 200_000:
                    sizes.append(len(await server.receive_some(20_000)))
            assert max(sizes) < 20_000 + 16_384


async def test_who_hangs_up_is_noticed_after_all_that_was_sent(net):
    with trio.fail_after(10):
        async with greeted(net) as (client, server, plain, _):
            await client.send_all(b"last words")
            await plain.aclose()
            assert await received(server, 10) == b"last words"
            assert await server.receive_some(MOST) == b""


async def test_bytes_that_are_no_tls_break_the_stream_and_what_came_before_is_still_told(net):
    with trio.fail_after(10):
        async with greeted(net) as (client, server, plain, _):
            await client.send_all(b"true")
            await plain.send_all(b"garbage " * 10)
            assert await received(server, 4) == b"true"
            with pytest.raises(trio.BrokenResourceError):
                await server.receive_some(MOST)


async def test_a_stream_whose_other_end_was_reset_breaks_for_who_sends_and_who_waits(net):
    with trio.fail_after(10):
        async with greeted(net) as (client, server, _, plain):
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            os.close(plain.socket.detach())
            with pytest.raises(trio.BrokenResourceError):
                await client.receive_some(MOST)
            with pytest.raises(trio.BrokenResourceError):
                await client.send_all(bytes(MOST))
            with pytest.raises(trio.ClosedResourceError):
                await server.receive_some(MOST)


async def test_a_stranger_fails_the_handshake_on_both_ends(net, tmp_path):
    stranger = Net(tmp_path, now=datetime.now(UTC)).source
    failed = []

    async def shake(stream):
        try:
            await stream.do_handshake()
            await stream.receive_some(MOST)  # in TLS 1.3 a client learns of its refusal when it reads
        except trio.BrokenResourceError as exc:
            failed.append(exc)

    with trio.fail_after(10):
        async with pair() as (one, other), trio.open_nursery() as nursery:
            nursery.start_soon(shake, TlsStream(one, stranger.client_context()))
            nursery.start_soon(shake, TlsStream(other, net.source.server_context()))
    assert len(failed) == 2


async def test_who_ends_within_the_handshake_breaks_it(net):
    with trio.fail_after(10):
        async with pair() as (one, other):
            await one.aclose()
            with pytest.raises(trio.BrokenResourceError):
                await TlsStream(other, net.source.server_context()).do_handshake()
