"""Shipped scenarios that are cheap enough to run each time: in namespaces where one may, else on loopback."""

import json

import pytest

from peer.cli import main


@pytest.mark.parametrize("name", ["quickstart", "flaky-wan"])
@pytest.mark.timeout(280)
def test_a_shipped_scenario_runs_without_a_violation(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["scenario", "run", name, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["violations"] == []
    assert found["delivered"] == found["expected"] > 1000
    assert found["failovers"] >= 1
