"""Maps of spaces in the DHT: who misses a step while the source is away finds it there."""

import random
from datetime import UTC, datetime

import trio

from overlay.dht import Version
from overlay.zones.balance import Plan
from overlay.zones.records import KIND, ZoneRecord, encode_zone, record_name
from peer.daemon.directory_records import CONFIGURATION, Notary
from peer.daemon.zones_in_directory import find_map
from rewriting.filters import Disjunction
from tests.overlay.identity.networks import Net
from tests.peer.daemon.network import live_network
from tests.peer.daemon.test_space_faults import TEXTS, Cuts
from tests.peer.daemon.test_spaces import a_message, publish, received, started, until


def a_way(origin, rng):
    """Choose a subscription and a message for it that begins at a machine other than the owner of its zone."""
    known = origin.catalog.history.now
    while True:
        entry = rng.choice(sorted(origin.catalog.live.values(), key=lambda one: one.subscription))
        message = a_message(rng)
        owner = known.owner(known.tree.leaf(entry.point))
        begins = known.owner(known.tree.entry(origin.space.region(message)))
        if Disjunction.parse(entry.filter).matches(message) and begins != owner:
            return entry.subscription, message, begins, owner


async def test_who_misses_a_step_while_the_source_is_away_finds_the_map_and_passes_messages_on(tmp_path):
    rng = random.Random(8)
    async with live_network(tmp_path) as network:
        peers, cuts = await started(network, 3), Cuts(network)
        for peer in peers:
            cuts.watch(peer)
        for i, text in enumerate(TEXTS * 3):
            told = await peers[i % 3].spaces.subscribe("market", text)
        origin = network.source.spaces.origins["market"]
        known = origin.catalog.history.now
        await until(lambda: network.source.spaces.rebalance() or len(known.owners()) == 3)
        last = await publish(network, a_message(rng), "first")
        await received(peers[2], told["subscription"], last)  # everything is with its owner
        name, message, begins, lacking = a_way(origin, rng)
        node = next(iter(network.peers[lacking].spaces.nodes.values()))
        key = next(iter(network.peers[lacking].spaces.nodes))

        cuts.cut(lacking, "source")
        before = known.version
        plan = Plan({}, {known.owned_by(begins)[-1]: begins})  # granted anew: the map has another version
        network.source.spaces._out("market", origin._change(plan))
        number = await publish(network, message, "under way")
        tasks = next(iter(network.peers[begins].spaces.nodes.values())).tasks
        await until(lambda: number in tasks)
        with trio.fail_after(20):
            while (found := await find_map(peers[0].directory, key, origin.space.axes, before)) is None:
                await trio.sleep(0.05)
        assert found.grants == known.grants
        assert known.owned_by(lacking), "it was not taken for dead meanwhile"
        version = known.version
        await network.stop("source")

        await until(lambda: node.known.version == version)
        here = next(peer for peer in peers if name in peer.spaces.subscriptions)
        store = here.spaces._store
        await until(lambda: (number, message) in store.messages(name, 0, number, 100))

        cuts.heal(lacking, "source")
        await network.start_source()
        assert (await received(here, name, number))[number] == message


def test_zones_are_believed_from_the_source_alone(tmp_path):
    net = Net(tmp_path, now=datetime.now(UTC))
    source, member = (Notary(one, lambda: net.revocations) for one in (net.source, net.join("paris")))
    body, name = encode_zone(ZoneRecord(7, -1, 0.0, "paris", 5)), record_name("market@1", "01")
    good, chunks = source.make(KIND, name, Version(0, 0, 7), body)
    assert (member.read(good).value, chunks) == (body, ())
    for kind in (KIND, CONFIGURATION):
        forged, _ = member.make(kind, name, Version(0, 0, 8), body)
        assert source.read(forged) is None
        assert member.read(forged) is None
    other, _ = source.make("zones", name, Version(0, 0, 7), body)
    assert member.read(other) is None, "nobody writes records of other kinds"


async def test_only_what_changed_is_pushed_and_the_head_last(tmp_path):
    async with live_network(tmp_path) as network:
        pushed = []
        push = network.source.directory.push_zone

        async def note(name, version, body):
            pushed.append(name.partition("/")[2])
            return await push(name, version, body)

        network.source.directory.push_zone = note
        peers = await started(network, 2)
        for i in range(6):
            await peers[0].spaces.subscribe("market", f"price < {10 * i + 5}")
        origin = network.source.spaces.origins["market"]
        known = origin.catalog.history.now
        await until(lambda: network.source.spaces.rebalance() or len(known.grants) >= 2)
        key = next(iter(peers[0].spaces.nodes))
        with trio.fail_after(20):
            while (found := await find_map(peers[1].directory, key, origin.space.axes, 0)) is None or (
                found.version != known.version
            ):
                await trio.sleep(0.05)
        assert {"0", "1", "-"} <= set(pushed)
        pushed.clear()
        zone = max(known.grants)
        network.source.spaces._out("market", origin._change(Plan({}, {zone: known.owner(zone)})))
        await until(lambda: len(pushed) == 2)
        assert pushed == [zone, "-"]
