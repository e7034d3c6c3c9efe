"""The planner as a process on a machine of its own, with real Spark: the network is planned over the link."""

import json
import time

import pytest

from peer.cli import main
from scenarios.processes import SOURCE, running


@pytest.mark.timeout(280)
def test_a_machine_with_the_planner_role_plans_the_network(tmp_path, capsys):
    with running(tmp_path) as network:
        network.start_source()
        network.join("p1")
        network.join("brain", "planner")
        network.start_peer("p1")
        for text in ("//a{cont}", "//a[b]{cont}", "//b{val}"):
            network.one("p1", "subscribe", pattern=text)
        for n in range(3):
            network.publish(f"d{n}", f"<r><a><b>{n}</b></a></r>".encode())
        network.start_planner("brain", "--look", "500ms", "--master", "local[1]", "--documents", "3")
        end = time.monotonic() + 240
        while network.one(SOURCE, "status")["epoch"] == 0:
            assert time.monotonic() < end, (tmp_path / "brain.log").read_text()[-3000:]
            time.sleep(0.3)
        events = [json.loads(line) for line in (tmp_path / "brain.log").read_text().splitlines()]
        assert [one["reason"] for one in events if one["event"] == "planning"] == ["there is no plan yet"]
        assert {"snapshot", "solve", "write"} <= {one["stage"] for one in events if one["event"] == "stage"}
        assert main(["status", "--home", str(network.home(SOURCE))]) == 0
        assert "for 3 subscriptions" in capsys.readouterr().out
