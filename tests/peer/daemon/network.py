"""A network on this machine: the source and its peers in one process, with real sockets, TLS and SQLite."""

from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

import trio

from overlay.identity import create_network
from peer.daemon.enrolling import join
from peer.daemon.peer_daemon import PeerDaemon, PeerSettings
from peer.daemon.source_daemon import SourceDaemon
from peer.daemon.source_state import SourceSettings


class LiveNetwork:
    """The daemons, by name, each in a task of its own; each can be stopped and started again."""

    def __init__(self, folder, nursery):
        self.folder, self._nursery = folder, nursery
        self.source, self.source_home = None, "source"
        self.peers = {}
        self._stops = {}
        self._source_ports = (0, 0)

    async def start_source(self):
        home = self.folder / self.source_home
        if not (home / "identity").exists():
            create_network(home, "test", datetime.now(UTC))
        self.source = SourceDaemon(home, SourceSettings("127.0.0.1", *self._source_ports))
        await self._nursery.start(self._run, "source", self.source)
        self._source_ports = self.source.port, self.source.enrolment_port

    async def start_peer(self, name, roles=("subscriber",), port=0, **settings):
        home = self.folder / name
        if not (home / "identity").exists():
            await self.join(name, roles)
        self.peers[name] = PeerDaemon(home, PeerSettings(port=port, **settings))
        await self._nursery.start(self._run, name, self.peers[name])
        return self.peers[name]

    async def join(self, name, roles=("subscriber",)):
        token = self.source.invite(name, roles, 1)["token"]
        await trio.to_thread.run_sync(join, self.folder / name, token)

    async def _run(self, name, daemon, *, task_status):
        stop, done = self._stops[name] = trio.Event(), trio.Event()
        async with daemon.opened():
            task_status.started()
            await stop.wait()
        done.set()

    async def stop(self, name):
        stop, done = self._stops.pop(name)
        stop.set()
        await done.wait()


@asynccontextmanager
async def live_network(folder):
    """Run a source; peers are added by ``start_peer``."""
    async with trio.open_nursery() as nursery:
        network = LiveNetwork(folder, nursery)
        await network.start_source()
        yield network
        nursery.cancel_scope.cancel()


async def rows(peer, subscription, upto):
    """Return all rows of a subscription by document, once it is complete up to one."""
    with trio.fail_after(30):
        return await _rows(peer, subscription, upto)


async def _rows(peer, subscription, upto):
    found = {}
    async with aclosing(peer.entries(subscription, 0, follow=True)) as entries:
        async for one in entries:
            if "row" in one:
                found.setdefault(one["document"], []).append(one["row"])
            elif "complete" not in one:
                found[one.get("document", one.get("gap", [0])[-1])] = one
            elif one["complete"] >= upto:
                break
    return found
