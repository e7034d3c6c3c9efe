"""Documents whose names are no text: cleaned where a file is published, refused elsewhere, and never the end of a
daemon."""

import os

import pytest
import trio

from peer.cli import main
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls, source_controls
from peer.daemon.questions import NoAnswer
from peer.storage import NewDocument, Unstorable
from tests.peer.daemon.network import live_network

ODD = os.fsdecode(b"caf\xe9.xml")


@pytest.mark.parametrize("home", ["source", "p1"])
async def test_a_file_whose_name_is_no_utf_8_is_published_under_what_can_be_read_of_it(tmp_path, capsys, home):
    file = tmp_path / ODD
    file.write_bytes(b"<a/>")
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        one = await network.start_peer("p1", ("publisher",))
        await one.connected.wait()
        controls = source_controls(network.source) if home == "source" else peer_controls(one)
        await nursery.start(serve_control, tmp_path / home, controls)
        arguments = ["publish", str(file), "--home", str(tmp_path / home)]
        assert await trio.to_thread.run_sync(main, arguments) == 0
        assert capsys.readouterr().out == f"1\t{tmp_path}/caf\ufffd.xml\n"
        assert network.source.log.document(1).name == f"{tmp_path}/caf\ufffd.xml"
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(("name", "key"), [("caf\udce9", "k"), ("d", "\ud800"), (5, "k"), ("d", None)])
async def test_a_name_or_a_key_that_is_no_text_is_refused(tmp_path, name, key):
    async with live_network(tmp_path) as network:
        with pytest.raises(NoAnswer, match="is no text in UTF-8; give another"):
            await network.source.publish("source", name, key, b"<a/>")
        assert (await network.source.publish("source", "d", "k", b"<a/>"))["number"] == 1


async def test_what_cannot_be_asked_is_refused_where_it_was_said(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1", ("publisher",))
        await one.connected.wait()
        with pytest.raises(NoAnswer, match="this cannot be asked: "):
            await one.publish("caf\udce9", "k", b"<a/>")


async def test_an_entry_that_the_log_cannot_store_is_refused_alone(tmp_path, caplog):
    async with live_network(tmp_path) as network:
        commit, told = network.source._committer.commit, {}

        async def append(name):
            try:
                told[name] = (await commit(NewDocument("source", name, name, b"<a/>"))).number
            except Unstorable:
                told[name] = "refused"

        async with trio.open_nursery() as nursery:
            for name in ("one", "caf\udce9", "two", "three"):
                nursery.start_soon(append, name)
        assert told.pop("caf\udce9") == "refused"
        assert sorted(told.values()) == [1, 2, 3]
        assert any(record.exc_info for record in caplog.records)
