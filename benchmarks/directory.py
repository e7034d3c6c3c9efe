"""``make bench-directory``: push configurations into the DHT, and then new epochs.

A source and 24 other nodes on loopback, all in this process, with the settings of daemons; 1,000 signed
configurations of as many machines, each with four choices. They go the way that they go in a source: versions by
``Issued``, signatures by ``Permits``, gathered by ``Pushing``, put by ``Directory``. A new epoch gives everybody a
new permit, but what says the same as before is put only every second epoch, since a permit counts in the next one
too. The first epoch puts everything, in the second 50 configurations change, in the third none. Seconds, records
put, and datagrams of all nodes; some configurations are then looked up at another node and compared. The goal:
1,000 in under a minute. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import trio
import trio_asyncio
from rich.console import Console
from rich.table import Table

from overlay.identity import Address, Role, create_network, first_list, install, prepare_key
from overlay.identity.keys import public_bytes
from peer.daemon.directory import open_directory
from peer.daemon.permits import Permits
from peer.daemon.pushing import Pushing
from peer.hosting.configuration import Configuration, Input
from peer.steering.issuing import Issued
from peer.storage.log_values import Configuration as Kept
from peer.storage.log_values import Version

LOOKED_UP = 20


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sites", type=int, default=1_000, help="machines, with a configuration each")
    parser.add_argument("--changed", type=int, default=50, help="configurations that the second epoch changes")
    parser.add_argument("--nodes", type=int, default=25, help="nodes of the DHT")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        figures = trio.run(measure, Path(folder), options)
    report(Console(), options, figures)
    print(json.dumps({"benchmark": "directory", **vars(options), "epochs": figures}))
    return 0


async def measure(folder: Path, options) -> list[dict[str, float]]:
    rng = random.Random(options.seed)
    made = create_network(folder / "source", "bench", datetime.now(UTC))
    nobody = first_list("bench", made.authority.intermediate, dht_key=1)
    permits, issued, pushing = Permits(made.credential, lambda: nobody), Issued(1, epoch=1), Pushing()
    for i in range(options.sites):
        issued.put(configuration(i, options.sites, rng))
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(trio_asyncio.open_loop())
        credentials = [made.credential, *(joined(made, folder, f"node-{i}") for i in range(1, options.nodes))]
        nodes = await open_nodes(stack, credentials, lambda: nobody)
        figures = []
        for changed in (options.sites, options.changed, 0):
            if figures:
                issued.begin_epoch()
                for i in rng.sample(range(options.sites), changed):
                    issued.put(configuration(i, options.sites, rng))
            kept = [signed(permits, one) for one in issued.configurations.values()]
            figures.append({"changed": changed, **await push(pushing, nodes, kept)})
            await compare(nodes[-1], rng.sample(kept, min(LOOKED_UP, len(kept))), permits)
    return figures


def configuration(number: int, sites: int, rng) -> Configuration:
    choices = tuple(
        (Input(f"s-{other:016x}", f"site-{other}", f"//item[@k='{other}']/name{{val}}"),)
        for other in rng.sample(range(sites), min(4, sites))
    )
    pattern = f"//item[@k='{number}']/name{{val}}"
    return Configuration(f"s-{number:016x}", f"site-{number}", pattern, 0, 0, 0, 0, 54, choices)


def signed(permits: Permits, one: Configuration) -> Kept:
    return Kept(one.subscription, Version(*one.version), permits.sign(one))


def joined(made, folder: Path, site: str):
    """Make a machine a member, without a conversation."""
    key = prepare_key(folder / site)
    chain = made.authority.issue(public_bytes(key), site, {Role.SUBSCRIBER}, datetime.now(UTC), since=0)
    return install(folder / site, made.authority.root, made.credential.settings, chain)


async def open_nodes(stack: AsyncExitStack, credentials, revocations):
    """Open a directory for each, the source's first; the others join through it."""
    nodes = []
    for credential in credentials:
        known = [Address("127.0.0.1", nodes[0].port)] if nodes else []
        nodes.append(
            await stack.enter_async_context(
                open_directory(credential, revocations, "127.0.0.1", 0, bootstrap=known)
            )
        )
        await nodes[-1].joined.wait()
    return nodes


async def push(pushing: Pushing, nodes, kept: list[Kept]) -> dict[str, float]:
    """Push configurations as the source does; say what that took."""
    datagrams, put = sum(one.statistics.sent for one in nodes), nodes[0].statistics.put
    begin, cpu = time.perf_counter(), time.process_time()
    pushing.put(kept)
    done = await pushing.push(nodes[0])
    return {
        "pushed": done.pushed,
        "records": nodes[0].statistics.put - put,
        "replicas": done.replicas,
        "seconds": round(time.perf_counter() - begin, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "datagrams": sum(one.statistics.sent for one in nodes) - datagrams,
    }


async def compare(node, some: list[Kept], permits: Permits) -> None:
    """Look configurations up, and see that what is found says what was pushed."""
    for one in some:
        found = await node.find_configuration(one.subscription)
        if found is None or says(permits, found) != says(permits, one.body):
            raise SystemExit(f"{one.subscription}: another node does not find what was pushed")


def says(permits: Permits, body: bytes) -> Configuration:
    return msgspec.structs.replace(permits.open(body), epoch=0, revision=0)


def report(console: Console, options, figures) -> None:
    title = f"{options.sites:,} configurations into {options.nodes} nodes, epoch by epoch"
    table = Table(title=title, title_justify="left")
    for name in ("epoch", *(name.replace("_", " ") for name in figures[0])):
        table.add_column(name, justify="right")
    for epoch, row in enumerate(figures, 1):
        table.add_row(str(epoch), *(f"{value:,}" for value in row.values()))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
