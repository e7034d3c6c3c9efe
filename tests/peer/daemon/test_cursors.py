"""Named cursors: through the command line, the Python client and restarts; at least once, never less."""

import errno
import json
from contextlib import aclosing, asynccontextmanager

import pytest
import trio

from peer.cli import main
from peer.client import Client
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls
from peer.daemon.cursors import MOST_CURSORS
from peer.errors import CommandError
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern

BODY = b"<r><b>1</b><b>2</b></r>"


class Setting:
    """A peer with a subscription, whose control socket is served."""

    def __init__(self, network, peer, name):
        self.network, self.peer, self.name = network, peer, name
        self.home = network.folder / "p1"
        self.client = Client(self.home)
        self.published = []

    async def publish(self, count):
        """Publish documents of two rows each, and wait until they are here."""
        for _ in range(count):
            key = f"k{len(self.published)}"
            self.published.append((await self.network.source.publish("source", key, key, BODY))["number"])
        await rows(self.peer, self.name, self.published[-1])

    async def cursor(self, name):
        """Return where a cursor is."""
        found = [one async for one in self.client._answers({"do": "cursors", "subscription": self.name})]
        return {one["cursor"]: one["upto"] for one in found}.get(name)

    async def command(self, *words):
        """Run a command as a user does, beside the daemon."""
        return await trio.to_thread.run_sync(main, [*words, "--home", str(self.home)])


@asynccontextmanager
async def setting(folder):
    async with live_network(folder) as network, trio.open_nursery() as nursery:
        peer = await network.start_peer("p1")
        await peer.connected.wait()
        name = (await peer.subscribe(Pattern.parse("//b{val}")))["subscription"]
        await nursery.start(serve_control, folder / "p1", peer_controls(peer))
        yield Setting(network, peer, name)
        nursery.cancel_scope.cancel()


def documents(text):
    """Return the documents of the rows printed."""
    return [one["document"] for one in map(json.loads, text.splitlines()) if "row" in one]


async def test_results_go_on_where_the_last_reader_of_the_name_was(tmp_path, capsys):
    async with setting(tmp_path) as found:
        await found.publish(2)
        one, two = found.published
        assert await found.command("results", found.name, "--cursor", "c") == 0
        assert documents(capsys.readouterr().out) == [one, one, two, two]
        assert await found.cursor("c") >= two
        await found.command("results", found.name, "--cursor", "c")
        assert documents(capsys.readouterr().out) == []
        await found.publish(1)
        await found.command("results", found.name, "--cursor", "c")
        assert documents(capsys.readouterr().out) == [found.published[-1]] * 2
        await found.command("results", found.name, "--cursor", "new", "--since", str(two))
        assert documents(capsys.readouterr().out) == [found.published[-1]] * 2


async def test_a_cursor_does_not_pass_what_could_not_be_written(tmp_path, monkeypatch, capsys):
    async with setting(tmp_path) as found:
        await found.publish(1)
        before = found.published[0] - 1

        flushed = []

        def broken():
            flushed.append(1)
            if len(flushed) > 1:  # the first row gets through, the rest does not
                raise OSError(errno.ENOSPC, "no room")

        with monkeypatch.context() as patched:
            patched.setattr("sys.stdout.flush", broken)
            assert await found.command("results", found.name, "--cursor", "c") == 2
        assert await found.cursor("c") <= before
        capsys.readouterr()
        await found.command("results", found.name, "--cursor", "c")
        assert documents(capsys.readouterr().out) == found.published * 2


async def test_a_client_that_stops_within_a_document_gets_it_again(tmp_path):
    async with setting(tmp_path) as found:
        await found.publish(3)
        seen = []
        while len(seen) < 40:
            async with aclosing(found.client.read(found.name, cursor="c", follow=False)) as entries:
                async for entry in entries:
                    seen.append(entry["document"])
                    if len(seen) in (1, 4, 7, 9):  # in the midst of documents, and at their ends
                        break
                else:
                    break
        assert sorted(set(seen)) == found.published
        for number in found.published:
            assert seen.count(number) >= 2
        last = seen[-2:]
        assert last == [found.published[-1]] * 2
        assert await found.cursor("c") >= found.published[-1]


async def test_a_cursor_outlives_the_daemon(tmp_path):
    async with setting(tmp_path) as found:
        await found.publish(2)
        await found.peer.cursors.begin(found.name, "c", 0)
        await found.peer.cursors.move(found.name, "c", found.published[0])
        await found.network.stop("p1")
        again = await found.network.start_peer("p1")
        assert await again.cursors.begin(found.name, "c", 0) == found.published[0]


async def test_what_a_cursor_cannot_do_is_refused_and_the_daemon_goes_on(tmp_path, capsys):
    async with setting(tmp_path) as found:
        await found.publish(1)
        await found.client.ask("entries", subscription=found.name, cursor="c")
        for wrong, said in (
            ({"subscription": found.name, "cursor": "c", "upto": 1 << 40}, "beyond the frontier"),
            ({"subscription": found.name, "cursor": "none", "upto": 1}, "no cursor none"),
            ({"subscription": "s-0", "cursor": "c", "upto": 1}, "no subscription s-0"),
            ({"subscription": found.name, "cursor": "webhook:1", "upto": 1}, "webhook remove"),
            ({"subscription": found.name, "cursor": "a b", "upto": 1}, "a name has"),
        ):
            with pytest.raises(CommandError, match=said):
                await found.client.ask("move_cursor", **wrong)
        for number in range(MOST_CURSORS - 1):
            await found.peer.cursors.begin(found.name, f"c{number}", 0)
        with pytest.raises(CommandError, match="the most"):
            await found.client.ask("entries", subscription=found.name, cursor="one-more")
        await found.publish(1)
        assert await found.command("cursors", "remove", found.name, "c") == 0
        capsys.readouterr()
        assert await found.command("cursors", "list", found.name, "--json") == 0
        listed = [json.loads(line)["cursor"] for line in capsys.readouterr().out.splitlines()]
        assert (len(listed), "c" in listed) == (MOST_CURSORS - 1, False)
        assert await found.command("cursors", "remove", found.name, "c") == 2
