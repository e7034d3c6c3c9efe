"""Certificates that are renewed, DHT keys that change, and who is refused meanwhile; with real daemons."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import trio

from overlay.identity import BadCredential, Credential, Role, create_network, install, prepare_key
from overlay.identity.keys import public_bytes
from overlay.identity.renewal import ask_renewal
from peer.daemon.own_identity import OwnIdentity
from peer.daemon.peer_daemon import PeerDaemon, PeerSettings
from peer.daemon.questions import NoAnswer
from tests.peer.daemon.network import live_network, rows
from xmlmatch import Pattern

DAY = timedelta(days=1)


async def until(condition):
    with trio.fail_after(30):
        while not condition():
            await trio.sleep(0.02)


def age(network, site, days):
    """Make a stopped machine's certificate one that was issued days ago."""
    folder = network.folder / site / "identity"
    known = Credential.load(folder)
    chain = network.source.authority.issue(
        public_bytes(prepare_key(folder)), site, known.member.roles, datetime.now(UTC) - days * DAY, since=0
    )
    return install(folder, known.root, known.settings, chain)


def signer_of(peer, name):
    """Return the certificate that signed what a peer keeps of a subscription, as bytes."""
    return msgspec.msgpack.decode(peer.store_file.hosted(name).configuration)[1][0]


async def test_a_peer_renews_its_certificate_and_its_links_use_it(tmp_path):
    async with live_network(tmp_path) as network:
        await network.start_peer("p1")
        await network.stop("p1")
        old = age(network, "p1", 25).member
        peer = await network.start_peer("p1")
        await until(lambda: peer.credential.member.serial != old.serial)
        new = Credential.load(tmp_path / "p1" / "identity").member
        assert new == peer.credential.member
        assert (new.roles, new.site) == (old.roles, "p1")
        assert new.not_after > datetime.now(UTC) + 29 * DAY
        assert str(new.not_after.year) in peer.status()["certificate_ends"]
        peer.links.hang_up("source", "to connect again")
        await until(lambda: seen_as(network.source, "p1") == new.serial)


def seen_as(daemon, site):
    wire = daemon.links._wires.get(site)
    return None if wire is None else wire.member.serial


async def test_a_link_ends_with_the_certificate_it_was_made_with(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        wires = network.source.links._wires
        old = wires["p1"]
        old.member = replace(old.member, not_after=datetime.now(UTC) - timedelta(minutes=10))
        await until(lambda: "p1" in wires and wires["p1"] is not old)
        assert wires["p1"].member.not_after > datetime.now(UTC)


async def test_the_source_renews_itself_and_signs_everything_again(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        first = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        second = (await two.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        before = network.source.credential.member
        await network.source._renew()
        assert network.source.credential.member.serial != before.serial
        leaf = network.source.credential.signer.chain[0]
        await until(lambda: signer_of(one, first) == signer_of(two, second) == leaf)
        assert one.host.subscriptions[first].feeding.permit == one.store_file.hosted(first).configuration
        told = await network.source.publish("source", "d", "k", b"<r><a>1</a></r>")
        assert len(await rows(two, second, told["number"])) == 1


async def test_a_source_whose_certificate_has_ended_starts_and_its_peers_go_on(tmp_path):
    home = tmp_path / "source"
    create_network(home, "test", datetime.now(UTC) - 40 * DAY)
    async with live_network(tmp_path) as network:
        assert network.source.credential.member.not_after > datetime.now(UTC) + 29 * DAY
        one = await network.start_peer("p1")
        await one.connected.wait()
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        version = one.host.subscriptions[name].configuration.version
        await network.stop("source")
        await network.start_source()
        assert network.source.catalog.steering.configuration(name).version == version


async def test_who_was_away_for_too_long_is_invited_again_and_keeps_its_subscriptions(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        await network.stop("p1")
        with pytest.raises(NoAnswer, match="member already"):
            network.source.invite("p1", ["subscriber"], 1)
        chain = age(network, "p1", 31).signer.chain
        with pytest.raises(BadCredential, match=r"ended on .* network invite p1"):
            PeerDaemon(tmp_path / "p1", PeerSettings())
        network.source.members._admissions._keep_end("p1", chain)
        await network.join("p1")
        one = await network.start_peer("p1")
        told = await network.source.publish("source", "d", "k", b"<r><a>1</a></r>")
        assert len(await rows(one, name, told["number"])) == 1


async def test_a_renewal_gives_nobody_another_site_or_role(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await network.start_peer("p1"), await network.start_peer("p2")
        for peer in (one, two):
            await peer.connected.wait()
        public_key, proof = ask_renewal(two.credential)
        with pytest.raises(NoAnswer, match="does not hold the key"):
            await one.questions.ask("source", "renew", {"public_key": public_key, "proof": proof})
        public_key, proof = ask_renewal(one.credential)
        wished = {"public_key": public_key, "proof": proof, "site": "p2", "roles": ["publisher", "source"]}
        chain = await one.questions.ask("source", "renew", wished)
        found = install(one.credential.folder, one.credential.root, one.credential.settings, chain)
        assert (found.member.site, found.member.roles) == ("p1", {Role.SUBSCRIBER})
        with pytest.raises(NoAnswer, match="renew"):
            await one.questions.ask("source", "renew", {"public_key": b"short", "proof": proof})


async def test_a_revocation_changes_the_dht_key_for_all_who_stay(tmp_path):
    async with live_network(tmp_path) as network:
        peers = [await network.start_peer(f"p{i}") for i in range(3)]
        for peer in peers:
            await peer.connected.wait()
            await peer.directory.joined.wait()
        await network.stop("p1")
        old = network.source.credential.settings.dht_keys.current
        await network.source.revoke("p2")
        await until(lambda: peers[0].credential.settings.dht_keys.current.number == 2)
        kept = Credential.load(tmp_path / "p0" / "identity").settings.dht_keys
        assert kept.current == network.source.credential.settings.dht_keys.current != old
        assert kept.previous == old
        assert network.source.links.revocations.dht_key == 2
        late = await network.start_peer("p1")  # it was off, and hears of the key when it greets
        await late.connected.wait()
        assert late.credential.settings.dht_keys.current == kept.current
        with trio.fail_after(30):
            while not await peers[0].directory.find_site("p1"):
                await trio.sleep(0.1)
        assert peers[2].credential.settings.dht_keys.current == old


async def test_an_old_dht_key_is_refused(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        old = network.source.members.dht_key()
        await network.source.revoke("p9")
        await until(lambda: one.credential.settings.dht_keys.current.number == 2)
        with pytest.raises(NoAnswer, match="DHT key 1 is older than 2"):
            await network.source.questions.ask("p1", "dht_key", old)
        with pytest.raises(NoAnswer):
            await network.source.questions.ask("p1", "dht_key", {"number": 3, "secret": b"short"})
        assert one.credential.settings.dht_keys.current.number == 2


async def test_an_old_list_of_the_revoked_is_refused(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        old = network.source.links.revocations.encoded
        await network.source.revoke("p9")
        await until(lambda: one.links.revocations.number == 1)
        with pytest.raises(NoAnswer, match="older"):
            await network.source.questions.ask("p1", "revocations", old)
        assert "p9" in one.links.revocations.sites


async def test_a_renewed_authority_signs_the_list_again_and_members_take_it(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        await network.source.revoke("p9")
        before = network.source.links.revocations
        await network.stop("source")
        network.source.authority.renew_intermediate(datetime.now(UTC))
        await network.start_source()
        after = network.source.links.revocations
        assert (after.said, after.encoded != before.encoded) == (before.said, True)
        await until(lambda: one.links.revocations.encoded == after.encoded)
        await network.start_peer("p2")  # under the new intermediate, beside one under the old
        await until(lambda: network.source.links.sites == ["p1", "p2"])


async def test_a_peer_remembers_who_is_revoked(tmp_path):
    async with live_network(tmp_path) as network:
        one = await network.start_peer("p1")
        await one.connected.wait()
        await network.source.revoke("p2")
        await until(lambda: one.links.revocations.number == 1)
        await network.stop("p1")
        await network.stop("source")
        one = await network.start_peer("p1")
        assert one.links.revocations.sites["p2"].number == 1


async def test_renewing_goes_on_after_a_failure(tmp_path, autojump_clock):
    made = create_network(tmp_path, "test", datetime.now(UTC) - 25 * DAY)
    identity = OwnIdentity(made.credential)
    tries = []

    async def renew():
        tries.append(trio.current_time())
        if len(tries) < 3:
            raise NoAnswer("the source is away")
        identity.renew_as_source(made.authority)

    with trio.move_on_after(5 * 86400):
        await identity.keep_renewed(renew)
    assert len(tries) == 3
    assert not identity.credential.needs_renewal(datetime.now(UTC))
