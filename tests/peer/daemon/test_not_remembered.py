"""A disk that takes nothing more ends no peer: what it remembers of its network is written when there is room."""

import shutil
from contextlib import contextmanager

import msgspec
import trio

from overlay.identity import Address
from peer.daemon.links import nobody_revoked
from peer.daemon.remembered import Remembered
from tests.peer.daemon.network import live_network, rows
from tests.peer.daemon.test_security import two_peers
from xmlmatch import Pattern

FILES = ("known.json", "revocations.bin", "network.json")


@contextmanager
def nothing_can_be_written(folder):
    """Put folders where files are written before they get their names; that fails also for root."""
    blocks = [folder / f"{name}.partial" for name in FILES]
    for block in blocks:
        (block / "in the way").mkdir(parents=True)
    yield
    for block in blocks:
        shutil.rmtree(block)


async def test_what_cannot_be_written_counts_for_this_run_and_is_written_when_there_is_room(tmp_path, caplog):
    async with live_network(tmp_path) as network:
        root, nodes = network.source.credential.root, [Address("127.0.0.1", 7)]
        folder = tmp_path / "identity"
        folder.mkdir()
        remembered = Remembered(folder, root)
        with nothing_can_be_written(folder):
            remembered.keep_nodes(nodes)
            remembered.keep_machines({"p9": (Address("127.0.0.1", 9),)})
            remembered.keep_revocations(network.source.links.revocations)
        assert remembered.nodes() == tuple(nodes)
        assert [record.getMessage() for record in caplog.records].count("not remembered") >= 3
        assert Remembered(folder, root).nodes() == ()
        remembered.keep_nodes(nodes)
        again = Remembered(folder, root)
        assert (again.nodes(), list(again.machines())) == (tuple(nodes), ["p9"])
        kept = again.revocations(nobody_revoked(root.network))
        assert kept.number == network.source.links.revocations.number


async def test_a_peer_that_can_remember_nothing_obeys_a_revocation_and_goes_on(tmp_path):
    async with live_network(tmp_path) as network:
        one, two = await two_peers(network)
        name = (await one.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        keys = one.credential.settings.dht_keys.current.number
        with nothing_can_be_written(one.credential.folder):
            one._whereabouts.remember()
            one.told_machines({"p2": [str(address) for address in two.own_addresses()]})
            await network.source.revoke("p2")
            with trio.fail_after(10):
                while one.credential.settings.dht_keys.current.number == keys:
                    await trio.sleep(0.02)
            assert one.links.revocations.number == network.source.links.revocations.number
            told = await network.source.publish("source", "d", "k", b"<r><a>1</a></r>")
            assert told["number"] in await rows(one, name, told["number"])
            one.links.hang_up("source", "to greet again")
            with trio.fail_after(10):
                while one.connected.is_set():
                    await trio.sleep(0.02)
                await one.connected.wait()
            assert one.membership.trouble == ""
        saved = msgspec.json.decode((one.credential.folder / "network.json").read_bytes())
        assert saved["network"] == "test"
