"""Networks in virtual time, one per seed: whatever happens, everybody has exactly its own."""

import pytest

from overlay.feeds.serving import Serving
from peer.cli import main
from scenarios.simulation.checks import find_circle
from scenarios.simulation.drawn import simulate
from scenarios.simulation.soaking import soak

SEEDS = 200
AT_ONCE = 10


@pytest.mark.parametrize("first", range(0, SEEDS, AT_ONCE))
def test_everybody_has_exactly_its_own(first):
    wrong = {}
    for seed in range(first, first + AT_ONCE):
        found = simulate(seed)
        if found.wrong:
            wrong[f"distributary scenario simulate --seed {seed} --log"] = found.wrong
    assert wrong == {}


def test_one_seed_is_one_run_bit_for_bit():
    assert simulate(7) == simulate(7)


def test_every_kind_of_fault_happens_and_is_told():
    found = soak(0, 20, None, lambda what: None)
    assert set(found.faults) == {"crash", "power loss", "partition", "chaos", "slow disk", "full disk", "trim"}
    assert found.runs == 20
    assert str(found).endswith("Everybody had exactly its own.")


def test_a_run_that_is_wrong_says_how_to_see_it_again(monkeypatch, capsys):
    monkeypatch.setattr(Serving, "serve", lambda self, items, upto: [])
    assert main(["scenario", "simulate", "--seed", "5"]) == 1
    assert "again: distributary scenario simulate --seed 5 --log" in capsys.readouterr().out


def test_a_circle_is_found_wherever_it_is():
    assert find_circle({"a": ("b", "c"), "b": ("d",), "c": ("d",), "d": ()}) == []
    assert find_circle({"a": ("b",), "b": ("c",), "c": ("b",)}) == ["b", "c", "b"]
    assert find_circle({"a": ("a",)}) == ["a", "a"]
