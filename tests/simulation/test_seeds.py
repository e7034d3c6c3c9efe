"""Networks in virtual time, one per seed: whatever happens, everybody has exactly its own."""

import json
import os
import signal
import subprocess
import sys

import pytest

from peer.cli import main
from scenarios.simulation import soaking, world
from scenarios.simulation.checks import find_circle
from scenarios.simulation.drawn import simulate
from scenarios.simulation.soaking import Soaked, soak, told_wrong
from scenarios.simulation.verdicts import Check, Violation
from tests.processes import ROOT

SEEDS = 200
AT_ONCE = 10
SOMETHING = Violation(Check.ROWS, "something")
FAULTS = {
    "chaos", "clock skew", "crash", "drain", "full disk", "gap", "join", "leave", "link of its own", "loss",
    "narrow links", "partition", "power loss", "reconfiguration", "slow disk", "stale proposal", "torn tail",
    "trim",
}  # fmt: skip


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_everybody_has_exactly_its_own(first):
    found = [simulate(seed) for seed in range(first, first + AT_ONCE)]
    assert [told_wrong(one.seed, one.wrong, one.lines) for one in found if one.wrong] == []


@pytest.mark.parametrize("seed", range(3))
def test_everybody_has_exactly_its_own_among_forty_machines(seed):
    found = simulate(seed, machines=40)
    assert [told_wrong(seed, found.wrong, found.lines, 40)] * bool(found.wrong) == []
    assert found.subscriptions > 100


def test_a_network_of_another_size_is_shown_again_in_that_size(monkeypatch, capsys):
    monkeypatch.setattr(world, "final_wrong", lambda found: [SOMETHING])
    assert main(["scenario", "simulate", "--seed", "5", "--machines", "7"]) == 1
    assert "again: distributary scenario simulate --seed 5 --machines 7 --log" in capsys.readouterr().out
    assert main(["scenario", "simulate", "--machines", "1"]) == 2
    assert "expected a number from 2 to" in capsys.readouterr().err


def test_every_kind_of_fault_happens_and_is_told():
    found = Soaked()
    for seed in (0, 1, 40):
        found.add(simulate(seed), is_logged=False)
    assert set(found.faults) == FAULTS
    assert str(found).startswith("3 runs, 0.0 simulated hours")
    assert str(found).endswith("Everybody had exactly its own.")


def digest_of(hash_seed, *options):
    """Run some seeds in a process of their own."""
    command = [sys.executable, "-m", "peer", "scenario", "simulate", "--seed", "1", "--count", "2", "--json"]
    done = subprocess.run(
        [*command, *options], env=os.environ | {"PYTHONHASHSEED": hash_seed}, cwd=ROOT, capture_output=True,
        check=True,
    )  # fmt: skip
    return json.loads(done.stdout)["digest"]


def test_one_seed_is_one_run_bit_for_bit_in_every_process():
    assert digest_of("1") == digest_of("2", "--log") == soak(1, 2, None, lambda what: None).digest
    assert simulate(3).digest != simulate(4).digest


def test_a_run_that_is_wrong_says_how_to_see_it_again_and_what_happened(monkeypatch, capsys):
    monkeypatch.setattr(world, "final_wrong", lambda found: [SOMETHING])
    assert main(["scenario", "simulate", "--seed", "5"]) == 1
    told = capsys.readouterr().out
    assert "again: distributary scenario simulate --seed 5 --log" in told
    assert "everything comes back" in told.partition("the last events:")[2]


def test_a_run_that_is_wrong_says_so_as_json_too(monkeypatch, capsys):
    monkeypatch.setattr(world, "final_wrong", lambda found: [SOMETHING])
    assert main(["scenario", "simulate", "--seed", "5", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)["violations"]["5"]
    assert told["wrong"] == [str(SOMETHING)]
    assert told["again"] == "distributary scenario simulate --seed 5 --log"
    assert any("everything comes back" in line for line in told["events"])


def test_the_log_of_a_run_has_every_message(capsys):
    assert main(["scenario", "simulate", "--seed", "5", "--log"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any("m0 < source: Opened feed=" in line for line in lines)
    assert len(lines) > 500


def test_a_soak_without_end_ends_with_its_report_when_it_is_told_to(monkeypatch, capsys):
    def interrupted(seed, **options):
        if seed == 12:
            os.kill(os.getpid(), signal.SIGTERM)
        return simulate(seed, **options)

    monkeypatch.setattr(soaking, "simulate", interrupted)
    assert main(["scenario", "simulate", "--seed", "10", "--minutes", "inf", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"] == 2
    assert set(told) >= {"simulated_hours", "faults", "violations"}


def test_fewer_seeds_than_asked_for_are_no_success(monkeypatch, capsys):
    def interrupted(seed, **options):
        if seed == 11:
            os.kill(os.getpid(), signal.SIGINT)
        return simulate(seed, **options)

    monkeypatch.setattr(soaking, "simulate", interrupted)
    assert main(["scenario", "simulate", "--seed", "10", "--count", "5", "--json"]) == 130
    told = capsys.readouterr()
    assert json.loads(told.out)["runs"] == 1
    assert "1 of 5 seeds were run" in told.err


@pytest.mark.parametrize("minutes", ["-1", "nan", "0"])
def test_a_time_that_is_none_is_refused(minutes, capsys):
    assert main(["scenario", "simulate", "--minutes", minutes]) == 2
    assert "expected a number above 0, or inf" in capsys.readouterr().err


def test_a_circle_is_found_wherever_it_is():
    assert find_circle({"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}) == []
    assert find_circle({"a": ("b",), "b": ("c",), "c": ("b",)}) == ["b", "c", "b"]
    assert find_circle({"a": ("a",)}) == ["a", "a"]
