"""The benchmark runs at a small size: every algorithm finds there what a scan finds."""

import json

from benchmarks import filters


def test_it_measures_every_algorithm_on_every_workload(capsys):
    arguments = ["--sizes", "300,600", "--ranges", "200", "--churn", "1200", "--events", "12"]
    assert filters.main(arguments) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    algorithms = {"scan", "counting", "propagation", "vectorised", "static", "dynamic"}
    for workload, sizes in {"uniform": {"300", "600"}, "free": {"600"}, "ranges": {"200"}}.items():
        assert set(figures[workload]) == sizes
        for found in figures[workload].values():
            assert set(found) == algorithms
            assert all(found[name]["event_us"] > 0 and found[name]["bytes"] > 0 for name in algorithms)
            for name in algorithms - {"scan"}:
                assert min(found[name][key] for key in ("insert_us", "batch_insert_us", "delete_us")) > 0
    for workload in ("schemas", "skew"):
        assert len(figures[workload]["dynamic"]["events_per_s"]) == filters.TICKS
