"""The directory when things go wrong: lost nodes, new keys, records that are none."""

import random
import time
import zlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256

import msgspec
import pytest
import trio

from overlay.dht import DhtSettings, Record, Version, encode_record, signed_bytes
from overlay.dht.contacts import Contact
from overlay.identity import Address, Role, sign, sign_compact
from peer.daemon.directory import open_directory
from peer.daemon.directory_records import Notary, Pieces, Sealed, dated, undated
from peer.hosting.configuration import Configuration, Input, encode
from tests.overlay.dht.network import FAST, free_port, until
from tests.overlay.identity.networks import Net
from tests.peer.daemon.directory_members import ADDRESSES, members, notary, offered, value_of


async def test_a_member_that_missed_the_new_dht_key_is_understood_for_a_while(tmp_path):
    async with members(tmp_path, 2, replace(FAST, grace_s=60)) as network:
        old = network.net.source.settings
        keys = old.dht_keys.rotated(datetime.now(UTC), timedelta(minutes=1))
        for site in ("source", "p1"):
            known = network.credentials[site]
            network.by_site[site].use(known.with_settings(replace(known.settings, dht_keys=keys)))
        assert await network.by_site["p2"].announce(ADDRESSES) == 2
        assert await network.by_site["p1"].find_site("p2") == ADDRESSES
        # One that starts with both keys on its disk hears both as well.
        credential = network.net.join("p3")
        late = await network.start("p3", credential.with_settings(replace(old, dht_keys=keys)))
        assert await late.find_site("p2") == ADDRESSES
        assert late._node.dht._node.seal.keys.previous is not None
        # And with a previous key that is over, only the new one.
        over = replace(keys, previous_until=datetime.now(UTC) - timedelta(seconds=1))
        credential = network.net.join("p4")
        later = await network.start("p4", credential.with_settings(replace(old, dht_keys=over)))
        assert later._node.dht._node.seal.keys.previous is None


async def test_who_did_not_get_the_new_dht_key_is_out_when_the_grace_time_is_over(tmp_path):
    async with members(tmp_path, 3, replace(FAST, grace_s=0.3)) as network:
        keys = network.net.source.settings.dht_keys.rotated(datetime.now(UTC))
        for site in ("source", "p1", "p2"):
            known = network.credentials[site]
            network.by_site[site].use(known.with_settings(replace(known.settings, dht_keys=keys)))
        await trio.sleep(0.4)
        refused = network.by_site["source"].statistics.refused_datagrams.get("wrong key", 0)
        assert await network.by_site["p3"].announce(ADDRESSES) == 0
        assert network.by_site["source"].statistics.refused_datagrams["wrong key"] > refused
        assert await network.by_site["p3"].find_site("p1") == ()
        assert await network.by_site["p2"].announce(ADDRESSES) == 2
        assert await network.by_site["p1"].find_site("p2") == ADDRESSES


async def test_a_revoked_site_is_not_found_any_more(tmp_path):
    async with members(tmp_path) as network:
        await network.by_site["p1"].announce(ADDRESSES)
        assert await network.by_site["p2"].find_site("p1") == ADDRESSES
        net = network.net
        net.revocations = net.revocations.extended(
            net.authority.intermediate, datetime.now(UTC), dht_key=2, sites=["p1"]
        )
        for site in ("source", "p2", "p3"):
            assert await network.by_site[site].find_site("p1") == ()


async def test_a_node_that_fails_is_opened_again_and_says_where_it_is(tmp_path):
    async with members(tmp_path, 2) as network:
        directory = network.by_site["p1"]
        await directory.announce(ADDRESSES)
        port, node = directory.port, directory._node.dht._node
        node.protocol.transport.close()
        await until(lambda: not directory.statistics.is_open)
        assert await directory.find_site("p2") == ()
        assert await directory.announce(ADDRESSES[:1]) == 0
        await until(lambda: directory._announced == 2)
        assert directory.port == port
        assert await network.by_site["p2"].find_site("p1") == ADDRESSES[:1]


async def test_whoever_waits_for_an_answer_goes_on_when_the_directory_closes(tmp_path, caplog):
    net = Net(tmp_path, now=datetime.now(UTC))
    found = []

    async def ask(directory):
        dht = directory._node.dht
        dht._node.protocol.router.add_contact(Contact(b"x" * 20, "127.0.0.1", free_port()))  # nobody is there
        found.append(await directory.find_site("p1"))

    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            async with open_directory(
                net.source, lambda: net.revocations, "127.0.0.1", free_port(), bootstrap=[],
                settings=DhtSettings(timeout_s=60),
            ) as directory:  # fmt: skip
                nursery.start_soon(ask, directory)
                await trio.testing.wait_all_tasks_blocked()
            assert directory.port == 0
    assert found == [()]
    assert [one.what for one in caplog.records if one.msg == "failed"] == ["find"]


async def test_whatever_goes_wrong_means_not_found(tmp_path, caplog, monkeypatch):
    async with members(tmp_path, 1) as network:
        directory = network.by_site["source"]
        record, _ = notary(network, "source").make("site", "source", Version(0, 0, 1), b"\xc1 no list")
        await offered(directory, record)
        assert await network.by_site["p1"].find_site("source") == ()

        async def fail(*_):
            raise RuntimeError("on purpose")

        monkeypatch.setattr(directory._node.dht, "put", fail)
        monkeypatch.setattr(directory._node.dht, "get", fail)
        assert await directory.announce(ADDRESSES) == 0
        assert await directory.find_site("p1") == ()
        assert await directory.current_epoch() is None
        told = await directory.push({"s-1": b"x", "s-2": b"y"}, {"s-1": Version(1, 1, 1)}, Version(1, 1, 1))
        assert (told.pushed, told.replicas) == (0, 0)
        failures = [one for one in caplog.records if one.name == "distributary.directory" and one.msg == "failed"]
        assert [one.what for one in failures] == ["announce", "find", "find", "push", "push", "push"]
        assert all("on purpose" in one.reason or "KeyError" in one.reason for one in failures)


async def test_a_port_in_use_is_said_at_once(tmp_path):
    async with members(tmp_path, 0) as network:
        taken = network.by_site["source"].port
        with pytest.raises(OSError, match="in use"):
            async with open_directory(
                network.net.join("p1"), lambda: network.net.revocations, "127.0.0.1", taken, bootstrap=[]
            ):
                pass


async def test_one_site_has_one_id(tmp_path):
    async with members(tmp_path, 2) as network:
        before = {site: one._node.dht.node_id for site, one in network.by_site.items()}
        assert len(set(before.values())) == 3
        await network.stop("p1")
        again = await network.start("p1", network.credentials["p1"])
        assert again._node.dht.node_id == before["p1"]


def test_records_are_signed_again_before_they_expire(tmp_path):
    net = Net(tmp_path, now=datetime.now(UTC))
    own = Notary(net.source, lambda: net.revocations)
    day = int(time.time()) // 86400
    old = datetime.fromtimestamp((day - 7) * 86400, UTC)
    record, chunks = own.make(
        "configuration", "s-1", dated(Version(1, 2, 3), old), random.Random(1).randbytes(2000)
    )
    renewed = own.renew(record)
    assert renewed.version > record.version
    assert undated(renewed.version) == Version(1, 2, 3)
    assert own.verify("configuration", "s-1", signed_bytes(renewed), renewed.signature)
    assert own.read(renewed) == own.read(record)
    assert 7 * 86400 <= renewed.expires_at - time.time() <= 8 * 86400
    aged = msgspec.structs.replace(chunks[0], expires_at=5, version=Version(0, 0, 5))
    assert own.renew(aged) == chunks[0]
    site, _ = own.make("site", "source", Version(0, 0, 10**15), b"")
    assert own.renew(site).version == Version(0, 0, 10**15 + 1)
    assert own.renew(Record("site", "source", Version(0, 0, 1), 5, b"nonsense")) is None


def test_the_same_value_signed_twice_is_one_record(tmp_path):
    net = Net(tmp_path, now=datetime.now(UTC))
    version = dated(Version(1, 1, 1), datetime.now(UTC))
    made = [
        Notary(net.source, lambda: net.revocations).make("configuration", "s-1", version, b"x") for _ in range(2)
    ]
    assert made[0] == made[1]


def test_the_longest_names_leave_room_for_addresses(tmp_path):
    net = Net(tmp_path, name="n" * 64, now=datetime.now(UTC))
    site = "s" * 64
    credential = net.join(site, [Role.SUBSCRIBER, Role.PUBLISHER, Role.PLANNER], since=10**15)
    own = Notary(credential, lambda: net.revocations)
    rng = random.Random(1)
    addresses = [Address(f"{rng.randbytes(16).hex()}.example.org", 7400 + i) for i in range(8)]
    record, chunks = own.make("site", site, Version(0, 0, 1), value_of(addresses))
    assert chunks == ()
    assert own.verify("site", site, signed_bytes(record), record.signature)
    longest = [Address(rng.randbytes(120).hex(), 7400 + i) for i in range(8)]
    record, chunks = own.make("site", site, Version(0, 0, 1), value_of(longest))
    assert len(chunks) == 3
    assert len(encode_record(record)) <= 1330


@pytest.mark.parametrize("payload", [b"", b"nonsense", bytes(1000), b"\xff" * 1000])
def test_payloads_that_are_none_are_refused(tmp_path, payload):
    net = Net(tmp_path, now=datetime.now(UTC))
    own = Notary(net.source, lambda: net.revocations)
    record = Record("site", "source", Version(0, 0, 1), 2**40, payload)
    signature = sign_compact(net.source.signer, "dht record", sha256(signed_bytes(record)).digest())
    assert not own.verify("site", "source", signed_bytes(record), signature)
    assert not own.verify("site", "source", b"short", signature)
    assert own.refused == 2


def test_a_payload_that_swells_is_refused(tmp_path):
    net = Net(tmp_path, now=datetime.now(UTC))
    own = Notary(net.source, lambda: net.revocations)
    sealed = msgspec.msgpack.encode(Sealed(*net.source.signer.chain, (), bytes(300_000)))
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS, zdict=net.root.der)
    swelling = Record("site", "source", Version(0, 0, 1), 2**40, deflate.compress(sealed) + deflate.flush())
    signature = sign_compact(net.source.signer, "dht record", sha256(signed_bytes(swelling)).digest())
    assert len(swelling.payload) <= 1000
    assert not own.verify("site", "source", signed_bytes(swelling), signature)


def test_an_expired_signer_is_refused(tmp_path):
    net = Net(tmp_path, now=datetime.now(UTC))
    own = Notary(net.source, lambda: net.revocations)
    gone = Notary(net.join("p1", now=datetime.now(UTC) - timedelta(days=31)), lambda: net.revocations)
    record, _ = gone.make("site", "p1", Version(0, 0, 1), b"")
    assert not own.verify("site", "p1", signed_bytes(record), record.signature)


def test_shared_pieces_are_used_until_the_last_value_goes():
    pieces = Pieces()
    assert pieces.use("a", ["1", "2"]) == ({"1", "2"}, set())
    assert pieces.use("b", ["2", "3"]) == ({"3"}, set())
    assert pieces.use("a", ["1", "4"]) == ({"4"}, set())
    assert pieces.use("b", []) == (set(), {"2", "3"})
    assert pieces.use("a", []) == (set(), {"1", "4"})


def made_configuration(rng, signer):
    """Make a signed configuration of about 1.5 KB, as the source does."""

    def name():
        return f"s-{rng.randbytes(8).hex()}"

    def pattern():
        topic, bound = rng.choice(["ACME", "weather", "rail", "steel"]), rng.randrange(1000)
        return f'//item[topic="{topic}"][price>{bound}]/headline{{cont}}'

    inputs = tuple(Input(name(), f"site-{rng.randrange(1000)}", pattern()) for _ in range(5))
    choices = (inputs[:2], inputs[2:4], inputs[4:])
    made = Configuration(name(), "site-1", pattern(), 1, 1, rng.randrange(1000), rng.randrange(10**6), 8, choices)
    return made.subscription, sign(signer, "configuration", encode(made))


async def test_many_configurations_are_pushed_and_found(tmp_path):
    rng = random.Random(1)
    async with members(tmp_path, 5, DhtSettings()) as network:
        bodies = dict(made_configuration(rng, network.net.source.signer) for _ in range(40))
        versions = dict.fromkeys(bodies, Version(1, 1, 1))
        told = await network.by_site["source"].push(bodies, versions, Version(1, 1, 1))
        assert told.pushed == 40
        name = rng.choice(sorted(bodies))
        assert await network.by_site["p4"].find_configuration(name) == bodies[name]
