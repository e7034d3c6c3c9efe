"""Daemons of a live network with their HTTP servers beside them."""

from contextlib import asynccontextmanager

import trio

from peer.http.limits import HttpLimits
from peer.http.pages import peer_server, source_server
from tests.peer.daemon.network import live_network

TOKEN = "k" * 40


class HttpNetwork:
    """A live network; ``source_port`` and ``port`` are where the source and the peer p1 serve HTTP."""

    def __init__(self, network, nursery):
        self.network, self._nursery = network, nursery
        self.source, self.peer = network.source, None
        self.source_port = self.port = 0

    async def start(self, **limits):
        """Run a server for the source, and one for a new peer."""
        self.peer = await self.network.start_peer("p1", roles=("subscriber", "publisher"))
        await self.peer.connected.wait()
        folder, bounds = self.network.folder, HttpLimits(**limits)
        self.server = peer_server(self.peer, folder / "p1", TOKEN, bounds)
        self.source_port = await self._nursery.start(
            source_server(self.source, folder / "source", TOKEN, bounds).serve, 0
        )
        self.port = await self._nursery.start(self.server.serve, 0)

    async def publish(self, *bodies):
        """Publish documents and return their numbers."""
        return [
            (await self.source.publish("source", f"d{n}", f"{n}/{body!r}", body))["number"]
            for n, body in enumerate(bodies)
        ]


@asynccontextmanager
async def http_network(folder, **limits):
    """Run a source and a peer, both with HTTP."""
    async with live_network(folder) as network, trio.open_nursery() as nursery:
        found = HttpNetwork(network, nursery)
        await found.start(**limits)
        yield found
        nursery.cancel_scope.cancel()
