"""A small scenario, run as a user would: daemons on hosts, faults, and the truth about it."""

import json
import signal

import pytest

from peer.cli import main
from scenarios.commands.scenario import summary
from scenarios.running.run import Run
from scenarios.running.stage import play
from scenarios.scenario_file import parse_scenario
from scenarios.timeline import timeline

SMALL = """
title = "small"
about = "Three hosts; one is killed, one is cut off, one frozen, subscriptions come and go."
seed = 4
settle_s = 100
[hosts]
count = 3
[links]
rtt_ms = 4
[subscriptions]
count = 9
limit = 2
[documents]
count = 24
rate = 4
[[faults]]
at = 0.7
kill = ["largest-feeder"]
seconds = 1
[[faults]]
at = 2.5
subscribe = 3
[[faults]]
at = 3
cut = ["h01"]
seconds = 1
[[faults]]
at = 4.5
unsubscribe = 3
"""


@pytest.mark.timeout(280)
def test_a_scenario_runs_is_judged_and_told(tmp_path, capsys):
    path, out = tmp_path / "small.toml", tmp_path / "out"
    path.write_text(SMALL)
    assert main(["scenario", "run", str(path), "--json", "--out", str(out)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["violations"] == []
    assert found["delivered"] == found["expected"] > 100
    assert (found["subscriptions"], found["documents"]) == (12, 24)
    assert len(found["happened"]) == len(timeline(parse_scenario(SMALL, "small")))
    if found["hosts"] == "namespaces":
        assert found["packets"]["passed"] > 100
    assert json.loads((out / "report.json").read_text()) == found
    page = (out / "report.html").read_text()
    assert "Everybody got exactly its own" in page
    assert "<svg" in page

    again = ["scenario", "run", str(path), "--out", str(out)]
    assert main(again) == 2
    assert "is not empty" in capsys.readouterr().err


@pytest.mark.timeout(280)
def test_at_full_load_a_fault_falls_into_the_load_which_is_told(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "full.toml"
    path.write_text(
        "title = 'full'\n[hosts]\ncount = 3\n[subscriptions]\ncount = 9\nlimit = 2\n"
        "[documents]\nrate = 'full'\nseconds = 8\nahead = 20\n"
        "[[faults]]\nat = 2\nkill = ['largest-feeder']\nseconds = 2\n"
    )
    assert main(["scenario", "run", str(path), "--json", "--hosts", "loopback"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["violations"] == []
    assert found["rate"] == "full"
    load, killed = found["load"], found["happened"][0][0]
    assert load["documents"] == found["documents"] == found["delivery_s"]["count"]
    assert load["per_s"] == pytest.approx((load["documents"] - 1) / load["seconds"], rel=0.01)
    assert min(at for at, _ in found["deliveries"]) < killed < max(at for at, _ in found["deliveries"])
    begin, end, text = found["spans"][0]
    assert (begin, end) == (0, load["seconds"])
    assert text == f"full load: {load['documents']:,} documents, {load['per_s']:.1f}/s"
    assert "At full load" in summary(found)


@pytest.mark.timeout(200)
def test_a_daemon_that_ends_by_itself_is_a_violation(tmp_path, monkeypatch):
    class Unlucky(Run):
        def _settle(self):
            self._network.signal("h01", signal.SIGKILL)
            super()._settle()

    monkeypatch.setattr("scenarios.running.stage.Run", Unlucky)
    text = "title = 'x'\n[hosts]\ncount = 2\n[subscriptions]\ncount = 4\n[documents]\ncount = 3\n"
    found = play(parse_scenario(text, "x"), "loopback", tmp_path, lambda _: None)
    assert found["violations"][0] == "h01 has ended by itself"
    assert list(found["bytes_sent"]) == ["h00", "source"]


@pytest.mark.timeout(280)
def test_a_plan_before_the_first_document_feeds_everybody_and_warm_documents_are_judged_but_not_timed(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "planned.toml"
    path.write_text("title = 'planned'\n[hosts]\ncount = 3\n[subscriptions]\ncount = 24\n[documents]\ncount = 4\n")
    changes = ["plan.latency=false", "documents.warm=2", "hosts.relay=never", "subscriptions.limit=4"]
    words = [word for change in changes for word in ("--set", change)]
    assert main(["scenario", "run", str(path), "--json", "--hosts", "loopback", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    [plan] = found["plans"]
    assert plan["source_feeds"] < plan["source_feeds_before"] or plan["source_feeds"] < found["subscriptions"]
    assert (found["documents"], found["delivery_s"]["count"], len(found["deliveries"])) == (11, 4, 4)
    assert found["delivered"] == found["expected"] > 24 * 4
    assert found["source_feeds"] == plan["source_feeds"]


def test_what_is_no_scenario_is_refused_in_one_line(tmp_path, capsys):
    assert main(["scenario", "run", "nowhere"]) == 2
    assert "neither a file nor one of" in capsys.readouterr().err
    path = tmp_path / "bad.toml"
    path.write_text("title = 'x'\n[hosts]\ncount = 0\n")
    assert main(["scenario", "check", str(path)]) == 2
    assert "$.hosts.count" in capsys.readouterr().err
    assert main(["scenario", "check", "quickstart"]) == 0
    assert main(["scenario", "list", "--json"]) == 0
