"""An Internet of routers, and the experiment on it at a small size."""

import json

import networkx
import pytest

from benchmarks import cn
from scenarios.simulation.internet import Internet


def test_hops_are_those_of_shortest_paths_and_degrees_are_skewed():
    names = [f"n{i}" for i in range(30)]
    net = Internet(names, routers=800, seed=3)
    graph = networkx.barabasi_albert_graph(800, 2, seed=3)
    for one in range(0, 30, 7):
        lengths = networkx.single_source_shortest_path_length(graph, net.places[one])
        assert [lengths[place] for place in net.places] == net.hops[one].tolist()
    assert net.hops_between("n3", "n9") == net.hops[3, 9] == net.between("n9", "n3").rtt_ms / 8
    assert net.degrees.max() > 10 * net.degrees.mean()
    with pytest.raises(ValueError, match="as many routers"):
        Internet(names, routers=10)


def test_the_experiment_runs_and_its_figures_make_sense(capsys):
    assert cn.main(["--machines", "12", "--subscriptions", "240", "--routers", "200", "--events", "40"]) == 0
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])
    for routing in ("tree", "neighbours"):
        large = figures[routing]["payloads"]["10000"]
        assert large["cn*"]["bytes"] < 0.9 * large["cn"]["bytes"]
        assert large["cn*"]["deliveries"] == large["cn"]["deliveries"] > 0
        caps = figures[routing]["caps"]
        assert caps["50"]["bytes"] <= caps["0"]["bytes"]
        assert caps["50"]["latency"] <= caps["0"]["latency"]
    same = "deliveries"
    assert figures["tree"]["payloads"]["10"]["cn"][same] == figures["neighbours"]["payloads"]["10"]["cn"][same]
