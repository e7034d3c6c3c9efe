"""Faults that get in each other's way: a run goes on, ends in time, and says what came of each."""

import json
import time

import pytest

from peer.cli import main
from scenarios.running.stage import play
from scenarios.scenario_file import BadScenario, parse_scenario

HEAD = """
title = "faulty"
settle_s = {settle_s}
[hosts]
count = {hosts}
[subscriptions]
count = 6
limit = 2
[documents]
count = 8
rate = 4
"""


def played(tmp_path, *faults, hosts=2, settle_s=60, more=""):
    text = HEAD.format(hosts=hosts, settle_s=settle_s) + "".join(f"[[faults]]\n{one}\n" for one in faults) + more
    return play(parse_scenario(text, "x"), "loopback", tmp_path, lambda _: None)


def outcomes(found):
    return {what: outcome for _, what, outcome in found["happened"]}


@pytest.mark.timeout(120)
def test_a_host_that_nobody_thaws_is_thawed_at_the_end_and_asked_nothing_before(tmp_path):
    faults = [
        "at = 0.3\nfreeze = ['h01']\nseconds = 3", "at = 0.4\nfreeze = ['h02']",
        "at = 0.6\nkill = ['largest-feeder']",
    ]  # fmt: skip
    begun = time.monotonic()
    found = played(tmp_path, *faults, hosts=3, settle_s=20)
    assert time.monotonic() - begun < 60
    assert found["violations"] == []
    assert outcomes(found)["kill largest-feeder"] == "h00"
    assert found["delivered"] == found["expected"] > 20


@pytest.mark.timeout(120)
def test_subscriptions_come_and_go_while_hosts_and_the_source_are_away_and_the_rest_happens_in_time(tmp_path):
    faults = [
        "at = 0.2\nkill = ['h00']", "at = 0.4\nsubscribe = 4", "at = 0.6\nkill = ['source']\nseconds = 1",
        "at = 0.7\nsubscribe = 2", "at = 0.8\nunsubscribe = 3",
    ]  # fmt: skip
    found = played(tmp_path, *faults)
    assert found["violations"] == []
    assert found["subscriptions"] == 6 + 4 + 2
    assert outcomes(found)["subscribe 4"] == "4 made, 2 at other hosts: theirs were not up"
    assert outcomes(found)["unsubscribe 3"] == "3 ended"
    assert max(at for at, _, _ in found["happened"]) < 4


@pytest.mark.timeout(120)
def test_what_cannot_happen_to_anybody_is_left_out_and_said(tmp_path):
    faults = [
        "at = 0.2\nkill = ['h00']", "at = 0.3\nkill = ['largest-feeder']\nseconds = 0.9",
        "at = 0.4\nfreeze = ['largest-feeder']\nseconds = 0.5", "at = 0.5\nkill = ['h01']\nseconds = 0.2",
        "at = 0.6\nsubscribe = 1",
    ]  # fmt: skip
    found = played(tmp_path, *faults)
    assert found["violations"] == []
    told = outcomes(found)
    assert told["kill largest-feeder for 0.9 s"] == told["start largest-feeder"] == "h01"
    assert told["freeze largest-feeder for 0.5 s"] == "left out: there is no host that it could be done to"
    assert told["kill h01 for 0.2 s"] == "left out: h01 is away"
    assert told["subscribe 1"].startswith("1 made")


@pytest.mark.timeout(120)
def test_what_fails_is_a_violation_unless_it_is_expected(tmp_path):
    more = "[expect]\nfailures_at_most = {}\n"
    found = played(tmp_path / "a", "at = 0.3\nunsubscribe = 9", more=more.format(0))
    [wrong] = found["violations"]
    assert wrong.startswith("unsubscribe 9 at 0.3")
    assert wrong.endswith("s failed: 6 of 9 subscriptions were ended: hosts that are up had no more")
    assert played(tmp_path / "b", "at = 0.3\nunsubscribe = 9", more=more.format(1))["violations"] == []


@pytest.mark.timeout(120)
def test_what_a_daemon_has_sent_before_it_was_ended_counts(tmp_path):
    faults = ["at = 2.5\nkill = ['source']", "at = 2.6\nstop = ['h00']"]
    found = played(tmp_path, *faults, hosts=1, more="[expect]\nfailovers_at_most = 9\n")
    assert found["violations"] == []
    assert found["bytes_sent"]["source"] > 40_000


@pytest.mark.timeout(120)
def test_a_run_that_breaks_off_is_judged_and_reported_all_the_same(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    scenario = tmp_path / "short.toml"
    fault = "[[faults]]\nat = 0.9\nkill = ['source']\nseconds = 5\n"
    scenario.write_text(HEAD.format(hosts=1, settle_s=2) + fault)
    assert main(["scenario", "run", str(scenario), "--hosts", "loopback", "--json"]) == 1
    told = capsys.readouterr()
    found = json.loads(told.out)
    assert "the run broke off: no daemon runs in" in found["violations"][0]
    assert 0 < found["documents"] < 8
    [folder] = (tmp_path / "reports").iterdir()
    assert folder.name.startswith("faulty-")
    assert f"the report is reports/{folder.name}/report.html" in told.err
    assert json.loads((folder / "report.json").read_text()) == found
    assert "the run broke off" in (folder / "report.html").read_text()
    assert (folder / "source.log").exists()


@pytest.mark.timeout(120)
def test_machines_join_a_running_network_and_leave_it_for_good(tmp_path):
    faults = ["at = 0.2\njoin = 2", "at = 0.4\nleave = ['h00']", "at = 1.8\nkill = ['h00', 'h02']"]
    with pytest.raises(BadScenario, match="h00 is gone since"):
        played(tmp_path, *faults)
    found = played(tmp_path, *faults[:2], settle_s=40)
    assert found["violations"] == []
    assert found["subscriptions"] == 6 + 2 * 5
    assert outcomes(found) == {"join 2": "h02: 5 made; h03: 5 made", "leave h00": "h00"}
    assert found["delivered"] == found["expected"] > 30
    assert (tmp_path / "hosts" / "h00" / "left.json").exists()
    assert {name for a, b, _ in found["machines"] for name in (a, b)} <= {"source", "h01", "h02", "h03"}
