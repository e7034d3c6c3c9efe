"""Daemons as processes, killed with -9 while documents flow: nothing is lost, nothing comes twice. ``make kills``
does the same for longer."""

import pytest

from scenarios.kills.soaking import SoakSettings, soak


@pytest.mark.timeout(280)
def test_kills_of_peers_and_of_the_source_only_delay(tmp_path):
    report = soak(tmp_path, SoakSettings(kills=10, seed=3, peers=2))
    assert report.wrong == []
    assert report.kills >= 10
    assert report.compared > report.documents > 10
    assert report.changes["subscribe"] > 5
