"""Networks of DHT nodes on this machine, for tests."""

import random
import socket
import time
from contextlib import asynccontextmanager
from hashlib import blake2b

import msgspec
import trio
import trio_asyncio

from overlay.dht import DhtSettings, Record, Version, signed_bytes
from overlay.dht.dht_driver import open_dht
from overlay.dht.records import record_key

KEY = b"the network's key, of 32 bytes.."
AUTHORITY = b"the key that signs"
# Ports that no other program is given: above are those of outgoing connections.
PORTS = range(20_000, 32_768)
FAST = DhtSettings(k=8, timeout_s=0.4)


def sign(record):
    """Sign a record; a MAC stands in for a signature."""
    return msgspec.structs.replace(record, signature=blake2b(signed_bytes(record), key=AUTHORITY).digest())


def verify(kind, name, signed, signature):
    return blake2b(signed, key=AUTHORITY).digest() == signature


def make_record(name="a", revision=1, *, kind="site", payload=b"payload", life_s=3600, now=None, **rest):
    expires_at = int(time.time() if now is None else now) + life_s
    return sign(Record(kind, name, Version(1, 1, revision), expires_at, payload, **rest))


def free_port(rng=random.SystemRandom()):  # noqa: B008 # one generator is what is meant
    while True:
        port = rng.choice(PORTS)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            try:
                sock.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def open_node(settings=FAST, *, key=KEY, check=verify, **rest):
    return open_dht(key, check, port=free_port(), settings=settings, **rest)


class Nodes:
    """Nodes in one trio-asyncio loop, each of which can die by itself."""

    def __init__(self, nursery):
        self.alive = []
        self._nursery = nursery
        self._rng = random.Random("nodes")  # the same ids in every run
        self._ends = {}

    async def add(self, *args, **kwargs):
        """Start a node and let it join through the first one alive."""
        kwargs = {"node_id": self._rng.randbytes(20)} | kwargs
        dht = await self._nursery.start(self._run, args, kwargs)
        if self.alive:
            await dht.bootstrap([self.alive[0].address])
        self.alive.append(dht)
        return dht

    async def kill(self, dht):
        self.alive.remove(dht)
        end, ended = self._ends.pop(dht)
        end.cancel()
        await ended.wait()

    async def _run(self, args, kwargs, task_status=trio.TASK_STATUS_IGNORED):
        ended = trio.Event()
        with trio.CancelScope() as scope:
            async with open_node(*args, **kwargs) as dht:
                self._ends[dht] = (scope, ended)
                task_status.started(dht)
                await trio.sleep_forever()
        ended.set()

    def nearest(self, kind, name, k):
        """List the k nodes alive that are nearest to a record: the truth, which no node knows."""
        target = int.from_bytes(record_key(kind, name), "big")
        return sorted(self.alive, key=lambda dht: int.from_bytes(dht.node_id, "big") ^ target)[:k]


@asynccontextmanager
async def open_nodes(count=0, *args, **kwargs):
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        nodes = Nodes(nursery)
        for _ in range(count):
            await nodes.add(*args, **kwargs)
        yield nodes
        nursery.cancel_scope.cancel()


async def until(claim, timeout_s=5):
    """Wait until a claim about a node holds."""
    with trio.fail_after(timeout_s):
        while not claim():  # nodes do not signal what only tests wait for
            await trio.sleep(0.01)


def holds(dht, record):
    """Whether a node holds exactly this record for others."""
    held = dht._node.store.find(record.key, now=time.time())
    return held is not None and held.record == record
