"""Nodes of the DHT together: what is put is found, by whoever asks, while nodes come and go."""

import subprocess
import sys
import time
from dataclasses import replace

import msgspec
import pytest
import trio
import trio_asyncio

from overlay.dht import (
    BrokenEndpoint,
    DhtSettings,
    LocalBadRecord,
    LocalTooMany,
    Record,
    StoreLimits,
    Version,
    split,
)
from overlay.dht.datagrams import Refusal
from overlay.dht.dht_driver import open_dht
from overlay.dht.records import make_chunk
from tests.overlay.dht.network import FAST, KEY, holds, make_record, open_node, open_nodes, sign, until, verify

SECOND_KEY = b"the second key, also of 32 bytes"


async def test_what_one_node_puts_every_node_gets():
    async with open_nodes(12) as nodes:
        records = [make_record(f"{i}") for i in range(10)]
        assert await nodes.alive[3].put_many(records) == [8] * 10
        for dht in nodes.alive:
            assert [await dht.get("site", f"{i}") for i in range(0, 10, 3)] == records[::3]
        assert await nodes.alive[0].get("site", "unknown") is None
        assert all(not dht.statistics.refused for dht in nodes.alive)


async def test_the_newest_version_wins_whichever_comes_last():
    async with open_nodes(5) as nodes:
        old, new = make_record(revision=1), make_record(revision=2)
        assert await nodes.alive[0].put(new) == 4
        assert await nodes.alive[1].put(old) == 0
        assert [await dht.get("site", "a") for dht in nodes.alive] == [new] * 5


async def test_a_reader_takes_the_newest_of_what_it_hears_and_mends_the_rest():
    async with open_nodes(3) as nodes:
        old, new = make_record(revision=1), make_record(revision=2)
        await nodes.alive[0].put(old)
        await nodes.alive[1]._aio(
            nodes.alive[1]._node.protocol.call_store(contact_of(nodes.alive[2]), encoded(new))
        )
        assert await nodes.alive[0].get("site", "a") == new
        await until(lambda: holds(nodes.alive[1], new))


def contact_of(dht):
    return dht._node.protocol.own


def encoded(record):
    return msgspec.msgpack.encode(record)


async def test_put_reports_how_many_others_hold_a_record():
    async with open_nodes(1) as nodes:
        assert await nodes.alive[0].put(make_record()) == 0  # there is nobody else
        full = StoreLimits(records=0)
        for limits in (full, StoreLimits(), full):
            await nodes.add(DhtSettings(k=8, timeout_s=3.0, limits=limits))
        assert await nodes.alive[0].put(make_record()) == 1


async def test_put_reports_nobody_when_all_are_dead_or_refuse():
    async with open_nodes(1) as nodes:
        writer = nodes.alive[0]
        refusing = [await nodes.add(check=lambda *_: False) for _ in range(2)]
        assert writer.statistics.peers == 2
        assert await writer.put(make_record()) == 0
        for dht in refusing:
            await nodes.kill(dht)
        assert await writer.put(make_record("b")) == 0
        assert writer.statistics.peers == 0


async def test_a_record_that_no_member_would_take_is_not_put():
    async with open_nodes(2) as nodes:
        for wrong in (
            make_record(payload=bytes(2000)),
            msgspec.structs.replace(make_record(), payload=b"unsigned"),
        ):
            with pytest.raises(LocalBadRecord):
                await nodes.alive[0].put(wrong)


async def test_one_lost_datagram_drops_no_peer(monkeypatch):
    async with open_nodes(2) as nodes:
        dht = nodes.alive[0]
        transport = dht._node.protocol.transport
        lost = []

        def lose_every_other(data, address, send=transport.sendto):
            lost.append(len(lost) % 2 == 0)
            if not lost[-1]:
                send(data, address)

        monkeypatch.setattr(transport, "sendto", lose_every_other)
        assert await dht.put(make_record()) == 1
        assert sum(lost) >= 2
        assert dht.statistics.peers == 1


async def test_replicas_survive_growth_and_the_death_of_the_first_nodes():
    k = FAST.k
    async with open_nodes(10) as nodes:
        records = [make_record(f"{i}") for i in range(60)]
        assert min(await nodes.alive[0].put_many(records)) == k
        first = list(nodes.alive)
        for _ in range(30):
            await nodes.add()
        await trio.sleep(0.5)
        held = [holds(dht, record) for record in records for dht in nodes.nearest("site", record.name, k)]
        assert sum(held) >= 0.95 * len(held)
        for dht in first:
            await nodes.kill(dht)
        readers = nodes.alive[::10]
        for i, record in enumerate(records):
            assert await readers[i % len(readers)].get("site", record.name) == record


async def test_refreshing_brings_replicas_back():
    settings = DhtSettings(k=4, timeout_s=0.15, refresh_s=0.8)
    async with open_nodes(8, settings) as nodes:
        record = make_record()
        await nodes.alive[0].put(record, keep=False)
        for dht in nodes.nearest("site", "a", 3):
            await nodes.kill(dht)
        await until(lambda: all(holds(dht, record) for dht in nodes.nearest("site", "a", 4)), timeout_s=10)
        assert await nodes.alive[-1].get("site", "a") == record


async def test_a_node_that_comes_and_goes_is_not_handed_everything_each_time(monkeypatch):
    async with open_nodes(2) as nodes:
        node, other = (dht._node for dht in nodes.alive)
        now, errands = [1000.0], []
        monkeypatch.setattr(node, "clock", lambda: now[0])
        monkeypatch.setattr(node, "_errand", lambda errand: errands.append(errand) or True)
        node._handed.clear()
        contact = other.protocol.router.node
        for later in (0.0, 30.0, 59.0, 61.0):
            now[0] = 1000.0 + later
            node._note_newcomer(contact)
        assert len(errands) == 2


async def test_own_records_are_put_again_and_renewed():
    settings = DhtSettings(k=8, timeout_s=0.15, republish_s=0.4, renew_before_s=1000)

    renewed = make_record("ending", 2, life_s=3000)

    def renew(record):
        return renewed

    async with open_nodes(1, settings, renew=renew) as nodes:
        writer = nodes.alive[0]
        lasting, ending = make_record("lasting", life_s=3000), make_record("ending", life_s=500)
        assert await writer.put_many([lasting, ending]) == [0, 0]
        late = await nodes.add(check=lambda *_: True)
        late._node.store._held.clear()  # what it was handed when it came
        await until(lambda: holds(late, lasting) and holds(late, renewed))
        writer.forget("site", "ending")
        assert writer.statistics.own_records == 1


async def test_own_records_are_bounded():
    async with open_node(DhtSettings(most_own=1)) as dht:
        await dht.put(make_record("a"))
        await dht.put(make_record("b"), keep=False)
        with pytest.raises(LocalTooMany):
            await dht.put(make_record("c"))


async def test_a_large_value_comes_back_and_a_damaged_one_does_not():
    value = bytes(i * i % 251 for i in range(40_000))
    expires_at = int(time.time()) + 3600
    large = split(value, expires_at)
    record = sign(Record("configuration", "7", Version(1, 1, 1), expires_at, large.manifest, large.whole_bytes))
    async with open_nodes(6) as nodes:
        writer, reader = nodes.alive[0], nodes.alive[-1]
        assert await writer.put_large(record, large.chunks) >= 4
        found = await reader.get("configuration", "7")
        assert found == record
        assert await reader.get_whole(found) == value
        small = make_record()
        assert await reader.get_whole(small) == small.payload
        victim = large.chunks[5]
        damaged = encoded(msgspec.structs.replace(victim, payload=victim.payload[:-1] + b"?"))
        for dht in nodes.alive:
            if held := dht._node.store.find(victim.key, now=time.time()):
                held.encoded = damaged
                held.record = msgspec.structs.replace(victim, payload=b"")
        fresh = await nodes.add()
        assert await fresh.get_whole(found) is None


async def test_a_large_value_whose_chunks_nobody_holds_is_not_put():
    async with open_nodes(1) as nodes:
        full = DhtSettings(limits=StoreLimits(per_kind={"chunk": 0}))
        other = await nodes.add(full)
        expires_at = int(time.time()) + 3600
        large = split(bytes(3000), expires_at)
        record = sign(Record("configuration", "7", Version(1, 1, 1), expires_at, large.manifest, 3000))
        assert await nodes.alive[0].put_large(record, large.chunks) == 0
        assert await other.get("configuration", "7") is None
        assert await other.get("chunk", make_chunk(bytes(960), expires_at).name) is not None


async def test_keys_rotate_node_by_node_without_losing_anybody():
    async with open_nodes(6, replace(FAST, grace_s=60)) as nodes:
        for i, dht in enumerate(list(nodes.alive)):
            dht.rotate(SECOND_KEY)
            assert await nodes.alive[0].put(make_record(f"by the first {i}")) == 5
            assert await nodes.alive[-1].put(make_record(f"by the last {i}")) == 5
        assert [dht.statistics.peers for dht in nodes.alive] == [5] * 6


async def test_after_the_grace_time_the_old_key_opens_nothing():
    settings = DhtSettings(k=8, timeout_s=0.15, grace_s=0.0)
    async with open_nodes(3, settings) as nodes:
        revoked = nodes.alive[2]
        for dht in nodes.alive[:2]:
            dht.rotate(SECOND_KEY)
        assert await revoked.put(make_record()) == 0
        assert nodes.alive[0].statistics.refused[Refusal.WRONG_KEY] >= 1
        assert await nodes.alive[0].put(make_record("b")) == 1
        assert revoked.statistics.peers == 0


async def test_a_node_opens_a_loop_of_its_own_where_there_is_none():
    assert trio_asyncio.current_loop.get() is None
    async with open_node() as one, open_node() as other:
        assert await other.bootstrap([one.address]) == 1
        assert await other.put(make_record()) == 1
    assert trio_asyncio.current_loop.get() is None


async def test_cancellation_ends_a_node_at_any_moment():
    for delay_s in (0.0, 0.001, 0.01, 0.05):
        with trio.move_on_after(delay_s):
            async with open_nodes(3) as nodes:
                while True:
                    await nodes.alive[0].put_many([make_record(f"{i}") for i in range(50)])
    assert trio.lowlevel.current_statistics().tasks_living < 20


async def test_no_task_outlives_a_node():
    async with open_nodes(2) as nodes:
        await nodes.alive[0].put(make_record())
    async with trio_asyncio.open_loop() as loop:
        await loop.synchronize()
        before = trio.lowlevel.current_statistics().tasks_living
        async with open_node() as dht:
            with trio.move_on_after(0.05):
                await dht.bootstrap([("127.0.0.1", 9)])
        await loop.synchronize()
        assert trio.lowlevel.current_statistics().tasks_living == before


async def test_an_error_in_the_block_comes_out_as_itself():
    with pytest.raises(ZeroDivisionError):
        async with open_node():
            raise ZeroDivisionError


async def test_a_node_that_loses_its_socket_says_so():
    async def lose():
        async with open_node() as dht:
            dht._node.protocol.transport.close()
            await trio.sleep_forever()

    with pytest.raises(BrokenEndpoint), trio.fail_after(5):
        await lose()


async def test_a_port_that_is_taken_is_an_error_that_leaves_nothing_open():
    async with open_node() as dht:
        with pytest.raises(OSError, match="in use"):
            async with open_dht(KEY, verify, port=dht.address[1]):
                pass


async def test_joining_through_nobody_reaches_nobody():
    async with open_node() as dht:
        assert await dht.bootstrap([]) == 0
        assert await dht.bootstrap([("127.0.0.1", 9)]) == 0
        assert await dht.get("site", "a") is None


@pytest.mark.parametrize("wrong", [{"k": 0}, {"k": 33}, {"alpha": 0}, {"timeout_s": 0}, {"refresh_s": -1}])
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ValueError, match="it is"):
        DhtSettings(**wrong)


def test_kademlia_s_server_with_its_pickle_is_not_even_imported():
    program = "import sys, overlay.dht.dht_driver; sys.exit('kademlia.network' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


async def test_when_the_grace_time_ends_who_does_not_know_the_new_key_leaves_the_tables():
    settings = DhtSettings(k=8, timeout_s=0.15, grace_s=0.3)
    async with open_nodes(4, settings, clock=lambda: 1_000_000_000.0) as nodes:  # a clock that stands still
        *stay, revoked = nodes.alive
        for dht in stay:
            dht.rotate(SECOND_KEY)
        assert await revoked.put(make_record(now=1_000_000_000)) == 3
        await until(lambda: all(revoked.address not in dht.peers for dht in stay))
        assert [dht.statistics.peers for dht in stay] == [2] * 3
        assert await revoked.put(make_record("b", now=1_000_000_000)) == 0
