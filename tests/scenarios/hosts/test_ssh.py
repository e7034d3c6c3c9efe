"""Scenarios on machines that are reached by ssh, each with an sshd and a network of its own."""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from peer.cli import main
from scenarios.hosts.places import Loopback
from tests.processes import ROOT
from tests.scenarios.hosts.sshds import OPERATOR, SSHD, machines
from tests.scenarios.leftovers import gone, processes_with

SMALL = """
title = "small"
settle_s = 100
[hosts]
count = 3
[subscriptions]
count = 6
limit = 2
[documents]
count = 12
rate = 4
[[faults]]
at = 0.5
kill = ["h01"]
seconds = 0.5
[[faults]]
at = 1.5
freeze = ["source"]
seconds = 0.5
[[faults]]
at = 2.3
stop = ["h00"]
"""

CHURN = """
title = "churn"
settle_s = 100
[hosts]
count = 2
[subscriptions]
count = 6
limit = 2
[documents]
count = 24
rate = 3
[[faults]]
at = 0.5
join = 1
[[faults]]
at = 4
leave = ["h00"]
"""

LONG = """
title = "long"
[hosts]
count = 1
[subscriptions]
count = 2
[documents]
count = 40
rate = 0.5
"""


@pytest.fixture(scope="module")
def stage():
    """Three machines with an sshd each; where there is no sshd, one that nobody answers at."""
    with tempfile.TemporaryDirectory(prefix="ssh-") as name:
        folder = Path(name)
        (folder / "small.toml").write_text(SMALL)
        (folder / "long.toml").write_text(LONG)
        if SSHD is None:
            (folder / "machines.txt").write_text("127.0.0.1 port=1")
            yield folder, Loopback()
        else:
            with machines(["a", "b", "c"], folder) as places:
                yield folder, places


@contextmanager
def running(stage, *words):
    """Run a scenario from the operator's machine; what is still running at the end is killed."""
    folder, places = stage
    command = [sys.executable, "-m", "peer", "scenario", "run", *map(str, words)]
    process = places.spawn(
        OPERATOR, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=folder, text=True,
        env=os.environ | {"TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    (folder / "tmp").mkdir(exist_ok=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def left_at(folder):
    """List what is in the folders of the machines."""
    return [kept for place in folder.glob("at-*") for kept in place.iterdir()]


@pytest.mark.timeout(280)
def test_a_scenario_runs_on_machines_reached_by_ssh_and_leaves_nothing_there(stage):
    folder, _ = stage
    out = folder / "out"
    words = folder / "small.toml", "--hosts", f"ssh:{folder / 'machines.txt'}", "--out", out, "--json"
    with running(stage, *words) as process:
        told, log = process.communicate(timeout=250)
    if SSHD is None:
        assert "127.0.0.1:1 (machines.txt line 1): " in log
        return
    assert process.returncode == 0, log
    found = json.loads(told)
    assert found["violations"] == []
    assert found["hosts"] == "ssh"
    assert found["delivered"] == found["expected"] > 30
    assert min(one["min"] for one in found["level_latency_s"].values()) > -2  # clocks were compared
    assert [outcome for _, _, outcome in found["happened"]] == ["h01", "h01", "source", "source", "h00"]
    assert (out / "hosts" / "h02" / "results.sqlite").stat().st_size > 0
    assert (out / "hosts" / "source.log").exists()
    assert left_at(folder) == []
    assert processes_with("scenario\0agent\0--folder\0" + str(folder)) == []
    assert list((folder / "tmp").iterdir()) == []


@pytest.mark.timeout(280)
def test_hosts_join_and_leave_a_network_on_machines_reached_by_ssh(stage):
    folder, _ = stage
    (folder / "churn.toml").write_text(CHURN)
    out = folder / "churn"
    words = folder / "churn.toml", "--hosts", f"ssh:{folder / 'machines.txt'}", "--out", out, "--json"
    with running(stage, *words) as process:
        told, log = process.communicate(timeout=250)
    if SSHD is None:
        assert "127.0.0.1:1 (machines.txt line 1): " in log
        return
    assert process.returncode == 0, log
    found = json.loads(told)
    assert found["violations"] == []
    assert [(what, outcome) for _, what, outcome in found["happened"]] == [
        ("join 1", "h02: 5 made"), ("leave h00", "h00")
    ]  # fmt: skip
    assert (found["subscriptions"], found["host_count"]) == (6 + 5, 3)
    assert found["delivered"] == found["expected"] > 60
    for name in ("h00", "h01", "h02"):
        assert (out / "hosts" / name / "results.sqlite").stat().st_size > 0
    assert left_at(folder) == []
    assert processes_with("scenario\0agent\0--folder\0" + str(folder)) == []


@pytest.mark.timeout(280)
def test_a_daemon_that_does_not_start_at_a_machine_is_named_and_its_log_is_brought_here(stage):
    folder, _ = stage
    lines = (folder / "machines.txt").read_text().splitlines()
    (folder / "astray.txt").write_text(f"{lines[0]}\n{lines[-1]} inside=203.0.113.9")  # not an address of its own
    with running(stage, folder / "long.toml", "--hosts", f"ssh:{folder / 'astray.txt'}") as process:
        _, log = process.communicate(timeout=250)
    assert process.returncode == 2
    if SSHD is None:
        assert "127.0.0.1:1" in log
        return
    last = log.splitlines()[-1]
    assert "(astray.txt line 2): h00 did not start; " in last
    kept = folder / last.rstrip(")").partition(" (its log: ")[2]
    assert kept.name == "h00.log"
    assert kept.read_text().strip()
    assert left_at(folder) == []


@pytest.mark.timeout(280)
def test_a_run_that_is_killed_leaves_nothing_at_the_machines(stage):
    folder, _ = stage
    alone = folder / "alone.txt"  # the source and a host on the same machine
    alone.write_text((folder / "machines.txt").read_text().splitlines()[0])
    with running(stage, folder / "long.toml", "--hosts", f"ssh:{alone}") as process:
        log = ""
        while "publishing" not in log:
            line = process.stderr.readline()
            log += line
            if not line:
                break
        if SSHD is None:
            assert "127.0.0.1:1" in log
            return
        assert "publishing" in log, log
        assert len(left_at(folder)) == 1
        process.kill()
        assert gone("scenario\0agent\0--folder\0" + str(folder)) == []
    assert left_at(folder) == []


def test_a_machine_that_cannot_be_used_is_named_before_anything_starts(stage):
    folder, _ = stage
    bad = folder / "bad.txt"
    lines = (folder / "machines.txt").read_text().splitlines()
    without = lines[-1].split(" command=")[0] + " command=/nowhere/distributary"
    cases = [([lines[0], "127.0.0.1 port=1"], "distributary: 127.0.0.1:1 (bad.txt line 2): ")]
    cases += [([without], "install distributary there, or say command= in bad.txt line 1")] if SSHD else []
    for machines_there, why in cases:
        bad.write_text("\n".join(machines_there))
        with running(stage, folder / "small.toml", "--hosts", f"ssh:{bad}") as process:
            told, log = process.communicate(timeout=100)
        assert process.returncode == 2
        assert why in log.splitlines()[-1] or SSHD is None
        assert "starting" not in log
        assert told == ""
        assert left_at(folder) == []


def test_faults_of_links_are_refused_over_ssh(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["scenario", "run", "flaky-wan", "--hosts", "ssh:nowhere.txt"]) == 2
    assert "faults[0] (loss 0.03 for 1.5 s): over ssh links are what they are" in capsys.readouterr().err
    assert main(["scenario", "run", "quickstart", "--hosts", "ssh:nowhere.txt"]) == 2
    assert "nowhere.txt: No such file or directory" in capsys.readouterr().err
    assert main(["scenario", "run", "quickstart", "--hosts", "rsh:x"]) == 2
    assert "--hosts rsh:x: expected one of auto, namespaces, loopback, or ssh:FILE" in capsys.readouterr().err
