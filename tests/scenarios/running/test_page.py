"""The report of a run: what is drawn is what happened."""

import re

import pytest

from scenarios.running.figures import curve, failures, spans, spread
from scenarios.running.page import page
from scenarios.running.story import Happened, Story
from scenarios.running.strip import MOST_LANES, strip
from scenarios.scenario_file import Expected

HAPPENED = [
    Happened(1.0, "kill largest-feeder for 3 s", "h02", event=0),
    Happened(2.0, "replan", "", event=2),
    Happened(3.0, "subscribe 5", "", event=3),
    Happened(4.0, "start largest-feeder", "h02", event=1, undoes=0),
    Happened(5.0, "cut h01", "h01", event=4),
]
PLANS = [{"at": 2.0, "seconds": 7.5, "epoch": 1, "changed": 3, "source_feeds": 2}]


def found():
    delivery, level = [0.2, 0.4, 3.0], {"1": [0.1, 0.2], "2": [0.3, 0.4]}
    return {
        "scenario": "made up", "about": "", "seed": 1, "hosts": "loopback", "host_count": 2, "subscriptions": 4,
        "expected": 8, "delivered": 8, "wrong": 0, "gaps": 0, "failovers": 1, "broke_off": "",
        "source_feeds": 2, "source_share": 0.5, "rate": 4.0,
        "load": {"documents": 3, "seconds": 2.0, "per_s": 1.0, "held_back": 0.0},
        "delivery_s": spread(delivery), "view_latency_s": spread([0.2]), "delivery_curve_s": curve(delivery),
        "level_latency_s": {name: spread(values) for name, values in level.items()},
        "level_curves_s": {name: curve(values) for name, values in level.items()}, "levels": {"1": 2, "2": 2},
        "bytes_sent": {"source": 345_928, "h00": 8_964_000, "h01": 12}, "direct_bytes": 2_000_000,
        "deliveries": [[0.0, 0.2], [1.0, 0.4], [2.0, 3.0]],
        "happened": [[one.at, one.what, one.outcome] for one in HAPPENED], "spans": spans(HAPPENED, PLANS),
        "plans": PLANS, "machines": [["source", "h00", 2], ["h00", "h01", 2]], "violations": [],
    }  # fmt: skip


def test_what_was_undone_has_an_end_and_whom_it_hit_is_named():
    assert spans(HAPPENED, PLANS) == [
        (1.0, 4.0, "kill h02 for 3 s"), (2.0, 9.5, "replan, 7.5 s"),
        (3.0, 3.0, "subscribe 5"), (5.0, None, "cut h01"),
    ]  # fmt: skip


def test_a_fault_is_drawn_from_when_to_when():
    drawn = strip("times", [(0.0, 1.0), (10.0, 2.0)], [(2.0, 4.0, "kill h02", "hard"), (5.0, None, "cut", "hard")])
    bars = [
        (float(x), float(w)) for x, w in re.findall(r'x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="14"', drawn)
    ]
    (killed, for_s), (cut, lasts) = bars
    assert for_s / (cut - killed) == pytest.approx(2 / 3, rel=0.01)
    assert lasts / (cut - killed) == pytest.approx(5 / 3, rel=0.01)


def test_a_text_that_has_no_room_beside_its_bar_is_on_it():
    said = "full load: 1,574 documents, 52.3/s"
    drawn = strip("times", [(0.0, 1.0), (10.0, 2.0)], [(0.0, 10.0, said, "ties"), (9.0, 10.0, said, "ties")])
    places = re.findall(r'<text class="flag[ a-z]*" x="([\d.-]+)" y="[\d.]+" text-anchor="(\w+)">', drawn)
    bars = re.findall(r'x="([\d.]+)" y="[\d.]+" width="[\d.]+" height="14"', drawn)
    assert [anchor for _, anchor in places] == ["start", "end"]
    assert all(float(x) > 0 for x, _ in places)
    assert float(bars[0]) < float(places[0][0]) < float(bars[1])


def test_the_page_says_what_full_load_was():
    load = {"documents": 1574, "seconds": 30.1, "per_s": 52.3, "held_back": 0.6}
    assert "At full load 1,574 documents were published, 52.3 per second." in page(
        found() | {"rate": "full", "load": load}
    )
    assert "full load" not in page(found())


def test_what_lasts_much_longer_than_the_documents_is_cut_off():
    spans_there = [(2.0, 90.0, "replan, 88 s", "loga"), (5.0, None, "cut", "hard")]
    drawn = strip("times", [(0.0, 1.0), (10.0, 2.0)], spans_there)
    ends = [
        float(x) + float(w) for x, w in re.findall(r'x="([\d.]+)" y="[\d.]+" width="([\d.]+)" height="14"', drawn)
    ]
    assert ends[0] == pytest.approx(ends[1], abs=0.2)
    assert ">10</text>" in drawn
    assert ">20</text>" not in drawn


def test_of_very_many_faults_some_are_drawn_and_the_report_says_so():
    many = found() | {"spans": [(float(i), float(i + 1), f"kill h{i:02}") for i in range(MOST_LANES + 7)]}
    text = page(many)
    assert f"kill h{MOST_LANES - 1:02}</text>" in text
    assert f"kill h{MOST_LANES:02}</text>" not in text
    assert "7 more are in the table" in text


def test_the_page_has_every_picture_and_nothing_from_elsewhere():
    text = page(found())
    for title in ("Delivery time, and what happened", "Latency by level", "Subscriptions by level", "Bytes sent",
                  "Who feeds whom", "What happened"):  # fmt: skip
        assert f"<h2>{title}</h2>" in text
    assert "346 kB" in text
    assert "kill h02 for 3 s" in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("http-equiv", "")


def test_a_run_in_which_nothing_arrived_still_has_a_page():
    nothing = {"count": 0}
    empty = found() | {
        "delivered": 0, "deliveries": [], "delivery_s": nothing, "view_latency_s": nothing, "delivery_curve_s": [],
        "level_latency_s": {}, "level_curves_s": {}, "levels": {}, "machines": [], "happened": [], "plans": [],
        "violations": ["s0 at <h00> lacks 1"],
    }  # fmt: skip
    text = page(empty)
    assert "<h1>1 violation</h1>" in text
    assert "s0 at &lt;h00&gt; lacks 1" in text


def test_a_plan_that_failed_is_a_violation_with_its_reason():
    story = Story(plans=[PLANS[0], {"at": -1.0, "seconds": 1.0, "failed": "no daemon runs\n"}], happened=HAPPENED)
    assert failures(Expected(), story) == ["the plan before the first document failed: no daemon runs"]
    assert failures(Expected(failures_at_most=1), story) == []
