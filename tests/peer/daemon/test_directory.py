"""The directory on real sockets: the source and members of one network, each with a node of the DHT."""

import random
import time
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256

import pytest
import trio
import trio_asyncio

from overlay.dht import Version, signed_bytes
from overlay.identity import Address, sign, sign_compact
from overlay.identity.dht_keys import fresh_dht_key
from peer.daemon.directory import open_directory
from peer.daemon.directory_records import dated
from tests.overlay.dht.network import FAST, free_port
from tests.peer.daemon.directory_members import ADDRESSES, Members, members, notary, offered, value_of


async def test_every_member_finds_what_a_site_announced(tmp_path):
    async with members(tmp_path) as network:
        assert await network.by_site["p1"].announce(ADDRESSES) == 5
        for directory in network.by_site.values():
            assert await directory.find_site("p1") == ADDRESSES
            assert await directory.find_site("p2") == ()
        statistics = network.by_site["p2"].statistics
        assert (statistics.is_open, statistics.peers, statistics.found, statistics.missed) == (True, 5, 1, 1)


async def test_the_last_announcement_wins(tmp_path):
    async with members(tmp_path, 2) as network:
        for addresses in (ADDRESSES, ADDRESSES[1:], ADDRESSES[:1]):
            await network.by_site["p1"].announce(addresses)
            assert await network.by_site["p2"].find_site("p1") == addresses


async def test_a_site_whose_clock_was_set_back_is_found_where_it_is_now(tmp_path):
    async with members(tmp_path, 2) as network:
        ahead = Version(0, 0, int(time.time() * 1000) + 10**9)
        record, _ = notary(network, "p1").make("site", "p1", ahead, value_of(ADDRESSES[1:]))
        assert await offered(network.by_site["source"], record) == 2
        assert await network.by_site["p1"].announce(ADDRESSES) == 2
        assert await network.by_site["p2"].find_site("p1") == ADDRESSES


async def test_what_was_announced_to_nobody_is_announced_when_somebody_is_there(tmp_path):
    async with trio_asyncio.open_loop(), trio.open_nursery() as nursery:
        network = Members(tmp_path, nursery, FAST)
        port = free_port()
        early = await network.start("p1", bootstrap=[Address("127.0.0.1", port)], waits=False)
        assert await early.announce(ADDRESSES) == 0
        async with open_directory(
            network.net.source, lambda: network.net.revocations, "127.0.0.1", port, bootstrap=[], settings=FAST
        ) as source:
            with trio.fail_after(20):
                await early.joined.wait()
            assert await source.find_site("p1") == ADDRESSES
        nursery.cancel_scope.cancel()


async def test_an_address_record_by_another_site_is_refused(tmp_path):
    async with members(tmp_path) as network:
        await network.by_site["p1"].announce(ADDRESSES)
        later = Version(0, 0, int(time.time() * 1000) + 60_000)
        forged, _ = notary(network, "p2").make("site", "p1", later, value_of([Address("203.0.113.9", 1)]))
        assert await offered(network.by_site["p2"], forged) == 0
        assert await network.by_site["p3"].find_site("p1") == ADDRESSES
        assert sum(one.statistics.refused_records for one in network.by_site.values()) >= 5


async def test_another_chain_or_another_record_does_not_lend_a_signature(tmp_path):
    async with members(tmp_path, 2) as network:
        own, other = notary(network, "p1"), notary(network, "p2")
        record, _ = own.make("site", "p1", Version(0, 0, 5), value_of(ADDRESSES))
        signed = signed_bytes(record)
        assert own.verify("site", "p1", signed, record.signature)
        # The chain of p1, under the signature of p2.
        by_other = sign_compact(network.credentials["p2"].signer, "dht record", sha256(signed).digest())
        assert not own.verify("site", "p1", signed, by_other)
        # The signature of p1, under another record of p1.
        newer, _ = own.make("site", "p1", Version(0, 0, 6), value_of(ADDRESSES))
        assert not own.verify("site", "p1", signed_bytes(newer), record.signature)
        # A signature of p1 for another purpose.
        for_else = sign_compact(network.credentials["p1"].signer, "configuration", sha256(signed).digest())
        assert not own.verify("site", "p1", signed, for_else)
        # The name that was signed is not the one that was asked for.
        assert not other.verify("site", "p2", signed, record.signature)


@pytest.mark.parametrize(("kind", "name"), [("configuration", "s-1"), ("epoch", "current")])
async def test_what_the_source_writes_a_subscriber_cannot(tmp_path, kind, name):
    async with members(tmp_path) as network:
        version = dated(Version(1, 1, 1), datetime.now(UTC))
        forged, _ = notary(network, "p1").make(kind, name, version, b"fed by me")
        assert await offered(network.by_site["p1"], forged) == 0
        assert await network.by_site["p2"].find_configuration("s-1") is None
        assert await network.by_site["p2"].current_epoch() is None
        told = await network.by_site["p1"].push({"s-1": b"fed by me"}, {"s-1": Version(1, 1, 1)}, Version(1, 1, 1))
        assert (told.pushed, told.replicas) == (0, 0)


@pytest.mark.parametrize(("kind", "name"), [("epoch", "other"), ("zones", "a"), ("chunk", "00")])
async def test_nobody_writes_records_of_other_kinds(tmp_path, kind, name):
    async with members(tmp_path, 1) as network:
        record, _ = notary(network, "source").make(kind, name, Version(1, 1, 1), b"")
        assert await offered(network.by_site["source"], record) == 0


async def test_a_pushed_configuration_is_found_by_all(tmp_path):
    async with members(tmp_path) as network:
        source = network.by_site["source"]
        body = sign(network.net.source.signer, "configuration", b"//item[topic]{cont} fed by s-2 and s-3")
        told = await source.push({"s-1": body}, {"s-1": Version(1, 4, 2)}, Version(1, 4, 9))
        assert (told.pushed, told.replicas) == (1, 5)
        assert source.statistics.own_records == 2  # a configuration of usual size is one record
        for directory in network.by_site.values():
            assert await directory.find_configuration("s-1") == body
            assert await directory.current_epoch() == Version(1, 4, 9)


@pytest.mark.parametrize("size", [5_000, 28_000, 256 << 10])
async def test_a_large_configuration_comes_back_whole(tmp_path, size):
    async with members(tmp_path) as network:
        body = random.Random(size).randbytes(size)
        await network.by_site["source"].push({"s-1": body}, {"s-1": Version(1, 1, 1)}, Version(1, 1, 1))
        assert await network.by_site["p3"].find_configuration("s-1") == body


async def test_an_older_version_does_not_replace_a_newer(tmp_path):
    async with members(tmp_path) as network:
        source, newer, older = network.by_site["source"], Version(1, 3, 0), Version(1, 2, 9)
        await source.push({"s-1": b"newer"}, {"s-1": newer}, newer)
        told = await source.push({"s-1": b"older"}, {"s-1": older}, older)
        assert (told.pushed, told.replicas) == (0, 0)
        record, _ = notary(network, "source").make(
            "configuration", "s-1", dated(older, datetime.now(UTC)), b"older"
        )
        assert await offered(source, record) == 0
        for directory in network.by_site.values():
            assert await directory.find_configuration("s-1") == b"newer"
            assert await directory.current_epoch() == newer


async def test_only_what_changed_is_put_and_what_is_over_is_forgotten(tmp_path):
    async with members(tmp_path, 2) as network:
        source, rng = network.by_site["source"], random.Random(1)
        same = rng.randbytes(960)
        bodies = {name: same + rng.randbytes(960) for name in ("s-1", "s-2")}
        versions = dict.fromkeys(bodies, Version(1, 1, 1))
        assert (await source.push(bodies, versions, Version(1, 1, 1))).pushed == 2
        assert source.statistics.own_records == 6  # two records, the epoch, and three chunks: one is shared
        assert (await source.push(bodies, versions, Version(1, 1, 2))).pushed == 0
        await source.push({"s-2": same}, {"s-2": Version(1, 1, 0)}, Version(1, 1, 2))  # one that was overtaken
        assert source.statistics.own_records == 6
        await source.push({"s-1": same}, {"s-1": Version(1, 1, 3)}, Version(1, 1, 3))
        assert await network.by_site["p1"].find_configuration("s-1") == same
        assert source.statistics.own_records == 5
        source.forget("s-1")
        assert source.statistics.own_records == 4
        source.forget("s-2")
        assert source.statistics.own_records == 1
        assert await network.by_site["p1"].find_configuration("s-2") == bodies["s-2"]  # until it expires


async def test_who_has_another_dht_key_finds_nothing(tmp_path):
    async with members(tmp_path) as network:
        await network.by_site["p1"].announce(ADDRESSES)
        known = network.net.join("p9")
        keys = replace(known.settings.dht_keys, current=fresh_dht_key(1))
        outsider = await network.start(
            "p9", known.with_settings(replace(known.settings, dht_keys=keys)), waits=False
        )
        assert await outsider.announce(ADDRESSES) == 0
        assert await outsider.find_site("p1") == ()
        assert not outsider.joined.is_set()
        assert outsider.statistics.peers == 0
        assert await network.by_site["p2"].find_site("p9") == ()
        assert network.by_site["source"].statistics.refused_datagrams["wrong key"] > 0
