"""The Python client and the commands, against daemons as processes."""

import json
from contextlib import aclosing

import trio

from distributary import Client
from peer.cli import main
from scenarios.processes import SOURCE, running


async def first_entries(client, pattern, count, publish):
    """Subscribe, let documents be published, and return what arrives first."""
    found = []
    async with trio.open_nursery() as nursery, aclosing(client.subscribe(pattern, complete=True)) as entries:
        async for entry in entries:
            if "complete" in entry and not found:
                nursery.start_soon(trio.to_thread.run_sync, publish)
            elif "row" in entry:
                found.append(entry)
                if len(found) == count:
                    break
        nursery.cancel_scope.cancel()
    return found


def test_a_client_gets_rows_as_they_arrive_and_commands_agree(tmp_path, capsys):
    with running(tmp_path) as network:
        network.start_source()
        network.join("paris")
        network.start_peer("paris")

        def publish():
            for n in range(2):
                network.publish(f"d{n}", f"<a><b>{n}</b></a>".encode())

        async def talk():
            return await first_entries(Client(network.home("paris")), "//b{val}", 2, publish)

        found = trio.run(talk)
        assert [entry["row"] for entry in found] == [{"b.val": "0"}, {"b.val": "1"}]
        home = ["--home", str(network.home("paris"))]
        assert main(["subscriptions", "--json", *home]) == 0
        (one,) = map(json.loads, capsys.readouterr().out.splitlines())
        assert (one["pattern"], one["fed_by"]) == ("//b{val}", ["source"])
        assert main(["results", one["subscription"], "--since", str(found[0]["document"]), *home]) == 0
        lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert [line.get("row") for line in lines] == [{"b.val": "1"}, None]
        assert main(["status", "--json", "--home", str(network.home(SOURCE))]) == 0
        assert json.loads(capsys.readouterr().out)["sites"] == ["paris"]
        assert main(["subscribe", "//a[", *home]) == 2
        assert main(["unsubscribe", "nothing", *home]) == 2
        assert main(["unsubscribe", one["subscription"], *home]) == 0


def test_a_command_without_a_daemon_says_how_to_start_one(tmp_path, capsys):
    assert main(["status", "--home", str(tmp_path)]) == 2
    assert "distributary network join" in capsys.readouterr().err
    (tmp_path / "identity").mkdir()
    assert main(["status", "--home", str(tmp_path)]) == 2
    assert "distributary peer run" in capsys.readouterr().err
