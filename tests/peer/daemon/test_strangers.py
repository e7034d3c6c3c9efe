"""Who has no certificate can take little of a machine: neither its files nor the place of members."""

import errno

import pytest
import trio

from peer.daemon import enrolling
from peer.daemon.enrolling import serve_enrolment
from peer.daemon.strangers import ContextOf, Strangers, TooManyStrangers
from tests.peer.daemon.network import live_network


async def silent(count, port):
    return [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(count)]


async def is_closed(stream):
    with trio.move_on_after(5):
        try:
            return await stream.receive_some(10) == b""
        except trio.BrokenResourceError:
            return True
    return False


async def filled(port, few):
    """Let as many strangers be there as may, and see that the next are closed at once."""
    streams = await silent(few.most, port)
    with trio.fail_after(10):
        while few.there < few.most:
            await trio.sleep(0.01)
    for late in await silent(3, port):
        assert await is_closed(late)
        await late.aclose()
    return streams


async def test_strangers_beyond_a_number_are_closed_at_once_and_members_come_when_there_is_room(tmp_path):
    async with live_network(tmp_path) as network:
        links = network.source.links
        links._strangers.most = 4
        streams = await filled(network.source.port, links._strangers)
        assert links.traffic()["refused"] == {"4 strangers at once are the most": 3}
        for stream in streams:
            await stream.aclose()
        one = await network.start_peer("p1")
        with trio.fail_after(20):
            await one.connected.wait()
        assert links._strangers.there == 0


async def test_those_who_join_are_few_at_once_and_the_next_can_when_they_have_gone(tmp_path, monkeypatch):
    made = []

    class Noted(Strangers):
        def __init__(self, most, where):
            super().__init__(3, where)
            made.append(self)

    monkeypatch.setattr(enrolling, "Strangers", Noted)
    async with live_network(tmp_path) as network:
        (few,) = made
        for stream in await filled(network.source.enrolment_port, few):
            await stream.aclose()
        with trio.fail_after(10):
            while few.there:
                await trio.sleep(0.01)
            await network.join("p1")
        assert few.turned_away > 0


async def test_a_source_without_file_descriptors_left_does_not_end_when_somebody_wants_to_join(tmp_path):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        credential, turns = network.source.credential, []

        def own():
            turns.append(1)
            if len(turns) == 2:  # the first is when it starts
                raise OSError(errno.EMFILE, "Too many open files")
            return credential

        port = await nursery.start(serve_enrolment, own, "127.0.0.1", 0, None)
        for _ in range(2):
            (stream,) = await silent(1, port)
            await stream.send_all(b"no TLS at all")
            assert await is_closed(stream)
            await stream.aclose()
        assert len(turns) == 3
        nursery.cancel_scope.cancel()


async def test_key_files_are_read_once_per_certificate(tmp_path):
    async with live_network(tmp_path) as network:
        credential, reads = network.source.credential, []
        context_of = ContextOf(lambda one: reads.append(one) or one.server_context())
        assert context_of(credential) is context_of(credential)
        network.source.identity.rotate_dht_key()
        assert context_of(network.source.credential) is context_of(credential)
        assert len(reads) == 1
        network.source.identity.renew_as_source(network.source.authority)
        context_of(network.source.credential)
        assert len(reads) == 2


def test_a_flood_is_logged_where_it_begins_and_again_when_it_had_ended(caplog):
    few = Strangers(2, "here")
    for _ in range(2):
        with few.one_more(), few.one_more():
            for _ in range(5):
                with pytest.raises(TooManyStrangers), few.one_more():
                    pass
    assert (few.there, few.turned_away) == (0, 10)
    assert [record.getMessage() for record in caplog.records] == ["too many strangers"] * 2
