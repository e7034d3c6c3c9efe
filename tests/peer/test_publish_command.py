"""``distributary publish`` with several documents: what is refused is told, and the rest goes on."""

import json
import os

import pytest
import trio

from peer.cli import main
from peer.daemon.control import serve_control
from peer.daemon.controls import source_controls
from peer.daemon.questions import Unreachable
from peer.publication import MOST_BYTES
from tests.peer.daemon.network import live_network


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Documents good and bad, in the folder one is in."""
    (tmp_path / "a.xml").write_text("<a/>")
    (tmp_path / "bad.xml").write_text("<a>")
    (tmp_path / "big.xml").write_text("")
    os.truncate(tmp_path / "big.xml", MOST_BYTES + 1)
    (tmp_path / "c.xml").write_text("<c/>")
    monkeypatch.chdir(tmp_path)
    return ["a.xml", "bad.xml", "none.xml", "big.xml", "c.xml"]


async def published(tmp_path, *words, handlers=None):
    """Publish at a source that runs; return the status."""
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path / "source", handlers or source_controls(network.source))
        words = ["publish", *words, "--home", str(tmp_path / "source")]
        status = await trio.to_thread.run_sync(main, words)
        nursery.cancel_scope.cancel()
        return status


async def test_what_is_refused_is_told_and_the_rest_is_published(tmp_path, files, capsys):
    assert await published(tmp_path, *files, "--json") == 2
    out, err = capsys.readouterr()
    told = [json.loads(line) for line in out.splitlines()]
    assert [(one["document"], one["number"]) for one in told] == [("a.xml", 1), ("c.xml", 2)]
    bad, none, big = err.splitlines()
    assert bad.startswith("distributary: bad.xml: ")
    assert none == "distributary: none.xml: No such file or directory"
    assert big == "distributary: big.xml: it is larger than 16,711,680 bytes, the most that a document may have"


async def test_when_the_source_is_away_it_is_told_what_is_left(tmp_path, files, capsys):
    async def publish(asked):
        if asked["name"] == "a.xml":
            return {"number": 1, "is_new": True}
        raise Unreachable("source is not connected")

    assert await published(tmp_path, "a.xml", "c.xml", "bad.xml", handlers={"publish": publish}) == 2
    out, err = capsys.readouterr()
    assert out == "1\ta.xml\n"
    assert err == "distributary: source is not connected; not published: c.xml, bad.xml\n"


def test_leaving_files_where_they_are_is_for_a_watched_folder(run, files):
    result = run("publish", "a.xml", "--leave")
    assert (result.status, result.err) == (
        2,
        "distributary: --leave is for files of a folder; name it with --watch\n",
    )
