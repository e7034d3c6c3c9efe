"""What of a new epoch goes into the DHT."""

import json

import trio

from benchmarks import directory as benchmark
from overlay.dht import Version
from tests.peer.daemon.network import live_network
from xmlmatch import Pattern


def test_a_second_epoch_puts_only_what_changed_and_a_third_what_that_left_out(capsys):
    benchmark.main(["--sites", "12", "--changed", "3", "--nodes", "4"])
    epochs = json.loads(capsys.readouterr().out.splitlines()[-1])["epochs"]
    assert [epoch["pushed"] for epoch in epochs] == [12, 3, 9]
    assert [epoch["records"] for epoch in epochs] == [13, 4, 10]  # and the epoch itself
    assert epochs[1]["datagrams"] < epochs[0]["datagrams"]


async def test_no_permit_in_the_dht_is_older_than_the_epoch_before(tmp_path):
    async with live_network(tmp_path) as network:
        peer = await network.start_peer("p1")
        await peer.connected.wait()
        await peer.directory.joined.wait()
        name = (await peer.subscribe(Pattern.parse("//a{cont}")))["subscription"]
        put = []
        for epoch in (1, 2, 3):
            await pushed(network.source.directory, epoch - 1)
            put.append(peer.permits.open(await peer.directory.find_configuration(name)).epoch)
            assert (await network.source.adopt(epoch - 1, []))["epoch"] == epoch
        await pushed(network.source.directory, 3)
        put.append(peer.permits.open(await peer.directory.find_configuration(name)).epoch)
        assert put == [0, 0, 2, 2]


async def pushed(directory, epoch):
    """Wait until an epoch has been pushed; it is put last."""
    with trio.fail_after(10):
        while (found := await directory.current_epoch()) is None or found.epoch < epoch:
            await trio.sleep(0.05)
    assert isinstance(found, Version)
