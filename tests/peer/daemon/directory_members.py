"""What the tests of the directory have in common."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime

import msgspec
import trio
import trio_asyncio

from overlay.dht import encode_record
from overlay.identity import Address
from peer.daemon.directory import open_directory
from peer.daemon.directory_records import Notary
from tests.overlay.dht.network import FAST, free_port
from tests.overlay.identity.networks import Net

ADDRESSES = (Address("192.0.2.7", 7400), Address("site.example", 7401))


class Members:
    """The directories of a network by site, in one trio-asyncio loop."""

    def __init__(self, folder, nursery, settings):
        self.net = Net(folder, now=datetime.now(UTC))
        self.by_site, self.credentials = {}, {}
        self._nursery, self._settings, self._stops = nursery, settings, {}

    async def start(self, site, credential=None, *, bootstrap=None, waits=True):
        credential = credential or (self.net.source if site == "source" else self.net.join(site))
        first = self.by_site.get("source")
        if bootstrap is None:
            bootstrap = [] if first is None else [Address("127.0.0.1", first.port)]
        directory = await self._nursery.start(self._run, site, credential, bootstrap)
        self.by_site[site], self.credentials[site] = directory, credential
        if waits:
            with trio.fail_after(20):
                await directory.joined.wait()
        return directory

    async def _run(self, site, credential, bootstrap, *, task_status):
        stop, stopped = self._stops[site] = trio.Event(), trio.Event()
        async with open_directory(
            credential, lambda: self.net.revocations, "127.0.0.1", free_port(), bootstrap=bootstrap,
            settings=self._settings,
        ) as directory:  # fmt: skip
            task_status.started(directory)
            await stop.wait()
        stopped.set()

    async def stop(self, site):
        stop, stopped = self._stops[site]
        stop.set()
        await stopped.wait()


@asynccontextmanager
async def members(folder, count=5, settings=FAST):
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        network = Members(folder, nursery, settings)
        for site in ["source", *(f"p{i}" for i in range(1, count + 1))]:
            await network.start(site)
        yield network
        nursery.cancel_scope.cancel()


def notary(network, site):
    return Notary(network.credentials[site], lambda: network.net.revocations)


async def offered(directory, record):
    """Offer a record to all other nodes without asking the own one first; how many took it."""
    dht = directory._node.dht
    return await dht._aio(dht._node.put(encode_record(record)))


def value_of(addresses):
    return msgspec.msgpack.encode([str(address) for address in addresses])
