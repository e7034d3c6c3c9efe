"""A watched folder, published through a real source: complete files, in order, once."""

import json
import os
import signal
import subprocess
import sys
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from peer.cli import main
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls, source_controls
from peer.errors import CommandError
from peer.publication import MOST_BYTES
from peer.watched_folder import CLAIMED, PUBLISHED, REFUSED, Settling, WatchedFolder
from peer.watching import Watching
from tests.peer.daemon.network import live_network

NOW = 1_700_000_000.0
LONG_AGO = NOW - 1000


class Setting:
    """A source with its control socket, and a folder that is watched."""

    def __init__(self, network, nursery, folder):
        self.network, self._nursery, self.folder = network, nursery, folder
        self.home = network.folder / "source"
        self.told = []
        self._watched = None

    async def serve(self):
        """Serve the control socket; return what ends it."""
        scope = trio.CancelScope()

        async def serving(*, task_status):
            with scope:
                await serve_control(self.home, source_controls(self.network.source), task_status=task_status)

        await self._nursery.start(serving)
        return scope

    def put(self, name, text, changed=LONG_AGO):
        """Put a file there, last changed at a time."""
        path = self.folder / name
        path.write_text(text)
        os.utime(path, (changed, changed))
        return path

    def watching(self, **options):
        """Watch, as another process would that is started now."""
        if self._watched is not None:
            self._watched.close()
        self._watched = WatchedFolder(self.folder, Settling(2.0), **options)
        return Watching(
            self.home, self._watched, self.told.append, sleep=lambda _: trio.from_thread.run(trio.sleep, 0.01)
        )

    async def look(self, watching, now=NOW):
        return await trio.to_thread.run_sync(watching.look, now)

    def names(self, folder):
        return sorted(path.name for path in (self.folder / folder).iterdir())


@asynccontextmanager
async def setting(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        found = Setting(network, nursery, folder)
        found.scope = await found.serve()
        yield found
        if found._watched is not None:
            found._watched.close()
        nursery.cancel_scope.cancel()


async def test_complete_files_are_published_in_the_order_of_their_names(tmp_path):
    async with setting(tmp_path) as found:
        for name in ("b.xml", "a.xml", "c.xml"):
            found.put(name, f"<{name[0]}/>")
        found.put(".hidden.xml", "<h/>")
        found.put("d.xml.part", "<d>")
        (found.folder / "folder").mkdir()
        (found.folder / "link.xml").symlink_to(tmp_path / "source" / "source.sqlite")
        os.mkfifo(found.folder / "pipe.xml")
        assert await found.look(found.watching()) == 3
        log = found.network.source.log
        documents = [log.document(one["number"]) for one in found.told]
        assert [(one.name, one.body) for one in documents] == [
            ("a.xml", b"<a/>"),
            ("b.xml", b"<b/>"),
            ("c.xml", b"<c/>"),
        ]
        numbers = [one["number"] for one in found.told]
        assert numbers == sorted(numbers)
        assert found.names(PUBLISHED) == [f"{n}-{c}.xml" for n, c in zip(numbers, "abc", strict=True)]
        left = {path.name for path in found.folder.iterdir()} - {CLAIMED, PUBLISHED, REFUSED}
        assert left == {".hidden.xml", "d.xml.part", "folder", "link.xml", "pipe.xml"}


async def test_a_file_that_is_being_written_waits_until_it_stays_as_it_is(tmp_path):
    async with setting(tmp_path) as found:
        watching = found.watching()
        found.put("a.xml", "<a>", changed=NOW)
        assert await found.look(watching, NOW) == 0
        assert await found.look(watching, NOW + 1.9) == 0
        found.put("a.xml", "<a></a>", changed=NOW + 1.9)
        assert await found.look(watching, NOW + 2.5) == 0
        assert await found.look(watching, NOW + 4.4) == 0
        assert await found.look(watching, NOW + 4.6) == 1
        assert found.network.source.log.document(found.told[0]["number"]).body == b"<a></a>"
        moved = found.folder / ".moving.xml"
        moved.write_text("<m/>")
        os.utime(moved, (LONG_AGO, LONG_AGO))
        moved.rename(found.folder / "m.xml")
        assert await found.look(watching, NOW + 5) == 1


async def test_what_cannot_be_published_goes_away_with_the_reason(tmp_path):
    async with setting(tmp_path) as found:
        found.put("bad.xml", "<a>")
        found.put("good.xml", "<a/>")
        os.truncate(found.put("huge.xml", ""), MOST_BYTES + 1)
        os.utime(found.folder / "huge.xml", (LONG_AGO, LONG_AGO))
        await found.look(found.watching())
        assert found.names(REFUSED) == ["bad.xml", "bad.xml.reason", "huge.xml", "huge.xml.reason"]
        assert "bad.xml" in (found.folder / REFUSED / "bad.xml.reason").read_text()
        assert "larger than" in (found.folder / REFUSED / "huge.xml.reason").read_text()
        assert [one["document"] for one in found.told if "document" in one] == ["good.xml"]
        assert found.names(CLAIMED) == []


async def test_what_was_published_before_a_crash_is_not_published_again(tmp_path):
    async with setting(tmp_path) as found:
        found.put("a.xml", "<a/>")
        watching = found.watching()
        watching._folder.published = lambda *_: None  # it ends here
        await found.look(watching)
        [first] = found.told
        assert found.names(CLAIMED) == ["a.xml"]
        found.put("a.xml", "<other/>")
        found.told.clear()
        await found.look(found.watching())
        again, other = found.told
        assert (again["number"], again["is_new"]) == (first["number"], False)
        assert (other["number"], other["is_new"]) == (first["number"] + 1, True)
        assert found.network.source.log.last == other["number"]


async def test_it_waits_for_a_daemon_that_is_away(tmp_path):
    async with setting(tmp_path) as found:
        watching = found.watching()
        found.scope.cancel()
        await trio.testing.wait_all_tasks_blocked()
        found.put("a.xml", "<a/>")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(found.look, watching)
            with trio.fail_after(30):
                while not found.told:
                    await trio.sleep(0.01)
            assert "no daemon runs" in found.told[0]["waiting"]
            await found.serve()
        assert found.told[-1]["document"] == "a.xml"
        assert found.names(REFUSED) == []


async def test_files_may_be_left_where_they_are(tmp_path):
    async with setting(tmp_path) as found:
        watching = found.watching(leaves=True)
        found.put("a.xml", "<a/>")
        assert [await found.look(watching), await found.look(watching)] == [1, 0]
        found.put("a.xml", "<a>2</a>")
        assert await found.look(watching) == 1
        assert [await found.look(found.watching(leaves=True)), found.told[-1]["is_new"]] == [1, False]
        assert [path.name for path in found.folder.iterdir()] == ["a.xml", REFUSED] or found.names(".")[
            -1
        ] == "a.xml"


async def test_a_folder_is_watched_by_one_at_a_time(tmp_path):
    folder = WatchedFolder(tmp_path, Settling(2.0))
    with pytest.raises(CommandError, match="somebody watches"):
        WatchedFolder(tmp_path, Settling(2.0))
    folder.close()
    WatchedFolder(tmp_path, Settling(2.0)).close()


def started(*words):
    return subprocess.Popen([sys.executable, "-m", "peer", *words], stdout=subprocess.PIPE)


async def test_the_command_runs_until_it_is_interrupted(tmp_path):
    async with setting(tmp_path) as found:
        found.put("a.xml", "<a/>")
        with started("publish", "--watch", found.folder, "--home", found.home, "--json") as process:
            told = json.loads(await trio.to_thread.run_sync(process.stdout.readline))
            process.send_signal(signal.SIGINT)
            assert await trio.to_thread.run_sync(process.wait, 120) == 130
        assert (told["document"], told["number"]) == ("a.xml", found.network.source.log.last)


async def test_a_machine_that_may_not_publish_watches_nothing(tmp_path, capsys):
    async with setting(tmp_path) as found:
        peer = await found.network.start_peer("p1")
        await found._nursery.start(serve_control, tmp_path / "p1", peer_controls(peer))
        found.put("a.xml", "<a/>")
        words = ["publish", "--watch", str(found.folder), "--home", str(tmp_path / "p1")]
        assert await trio.to_thread.run_sync(main, words) == 2
        assert "no publisher" in capsys.readouterr().err
        assert (found.folder / "a.xml").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [(["publish"], "name documents"), (["publish", "a.xml", "--watch", "d"], "neither"),
     (["publish", "--watch", "d", "--settle", "-1"], "--settle")],
)  # fmt: skip
def test_words_that_do_not_fit_are_refused(words, said, capsys):
    assert main(words) == 2
    assert said in capsys.readouterr().err
