"""How long it takes to push records from one node into a network on this machine, all in one process.

Run it with ``python -m tests.overlay.dht.measure_put``. The goal: 1,000 records in under a minute.
"""

import random
import sys
import time

import trio

from overlay.dht import DhtSettings
from tests.overlay.dht.network import make_record, open_nodes

RECORDS, NODES, PAYLOAD = 1000, 20, 500


async def measure():
    rng = random.Random(1)
    records = [make_record(f"site-{i}", payload=rng.randbytes(PAYLOAD)) for i in range(RECORDS)]
    async with open_nodes(NODES, DhtSettings()) as nodes:
        start = time.perf_counter()
        replicas = await nodes.alive[0].put_many(records)
        seconds = time.perf_counter() - start
    sys.stdout.write(
        f"{RECORDS} records of about 600 bytes into {NODES} nodes: {seconds:.1f} s, "
        f"{min(replicas)} to {max(replicas)} replicas each\n"
    )


if __name__ == "__main__":
    trio.run(measure)
