"""Reports of whatever is given: hostile texts, parts that are missing, numbers of any size."""

import copy
import json
import math
import os
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_planner import report
from spark_planner.charts import Axis, Bar, Line, Mark, escaped, horizontal_bars, linear_axis, log_axis, plot
from spark_planner.report import report_html, write_report
from tests.spark_planner.report_pages import CARDS, FIGURES, Page, changed, page, svgs

NEEDED_BY = {
    "levels": ["Levels before and after improvement"],
    "fan_out": ["Fan-out against the limits"],
    "trace": ["Latency against time", "Utilization against time"],
    "site_utilization": ["Utilization by site"],
    "seconds": ["Seconds by stage"],
    "busiest_sites": ["Busiest sites"],
    "largest_feeders": ["Largest feeders"],
}


JUNK = [
    None,
    [],
    {},
    0,
    -1,
    1e300,
    10**400,
    math.nan,
    math.inf,
    True,
    "text",
    [[]],
    [None],
    [[None, None]],
    [{}],
    b"\0",
]


HOSTILE = """<script>alert(1)</script>&amp;"'</style></svg>\0\ud800"""


def with_hostile_text(value):
    """Put hostile text wherever figures hold text, and beside every name."""
    if isinstance(value, dict):
        return {name: with_hostile_text(of) for name, of in value.items()} | {HOSTILE: 7.5}
    if isinstance(value, list):
        return [with_hostile_text(of) for of in value]
    return HOSTILE if isinstance(value, str) and value != "optimal" else value


def test_text_from_figures_is_escaped_everywhere():
    text = report_html(with_hostile_text(changed(inexact=[HOSTILE])))
    shown = Page(text)
    assert svgs(text)
    assert {tag for tag, _ in shown.texts if tag in ("script", "b", "svg")} == {"svg", "b"}
    assert text.count("</style>") == 1
    assert "<script>alert(1)</script>&amp;\"'</style></svg>\ufffd\ufffd" in shown.text("li", None)[0]
    assert not any(name.startswith("on") for _, name, _ in shown.attributes)
    text.encode()


def test_long_names_are_clipped():
    figures = {
        "largest_feeders": [{"name": "s", "pattern": "//" + "a" * 5_000, "site": "x", "feeds": 1, "limit": 1}]
    }
    assert len(page(figures).text("code")[0]) < 300


@pytest.mark.parametrize("part", FIGURES)
def test_a_missing_part_takes_away_its_cards_and_nothing_else(part):
    figures = {name: of for name, of in FIGURES.items() if name != part}
    assert page(figures).text("h2") == [card for card in CARDS if card not in NEEDED_BY.get(part, [])]


def test_no_figures_at_all_still_make_a_page():
    assert page({}).text("h1") == ["Plan report"]
    assert page({}).text("h2") == []


def places(value, path=()):
    """List the way to every part of the figures."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for name, of in inner for place in places(of, (*path, name)))]


@pytest.mark.parametrize("place", places(FIGURES)[1:], ids=str)
def test_a_part_that_is_not_what_it_should_be_never_breaks_the_page(place):
    for junk in JUNK:
        figures = copy.deepcopy(FIGURES)
        part = figures
        for name in place[:-1]:
            part = part[name]
        part[place[-1]] = junk
        text = report_html(figures)
        assert text.count("<svg") == len(svgs(text))
        assert text.rstrip().endswith("</html>")
        Page(text)


def test_all_zero_figures_make_a_page_without_empty_pictures():
    def zeroed(value):
        if isinstance(value, dict):
            return {name: zeroed(of) for name, of in value.items()}
        if isinstance(value, list):
            return [zeroed(of) for of in value]
        return 0 if isinstance(value, int | float) else value

    text = report_html(zeroed(FIGURES))
    assert svgs(text)
    titles = Page(text).text("h2")
    assert "Levels before and after improvement" not in titles
    assert "Fan-out against the limits" not in titles
    assert "nan" not in text


def test_an_empty_trace_leaves_its_pictures_out_and_a_trace_without_utilization_one():
    assert page({"trace": []}).text("h2") == []
    assert page({"trace": [[0, 0.2], [1, 0.1]]}).text("h2") == ["Latency against time"]


def test_an_axis_that_does_not_start_at_zero_is_admitted():
    narrow, wide = page({"trace": [[0, 0.2], [1, 0.19]]}), page({"trace": [[0, 0.2], [1, 0.01]]})
    assert "does not start at 0" in narrow.text("figcaption")[0]
    assert "does not start at 0" not in wide.text("figcaption")[0]


def test_a_wide_fan_out_is_drawn_in_ranges_and_far_limits_are_named():
    figures = {
        "fan_out": {"feeds": [0, 1, 2_000], "subscriptions": [5, 4, 1], "limits": {"plan": 30, "hard": 99_999}}
    }
    shown = page(figures)
    assert "Each bar stands for 50 numbers of feeds." in shown.text("figcaption")[0]
    assert "Limits too far right to be shown: hard 99,999." in shown.text("figcaption")[0]
    assert shown.text("text", "flag plan") == ["plan 30"]
    assert "0 to 49 feeds: 9" in shown.text("title")


def test_a_long_trace_is_thinned_but_keeps_its_ends():
    figures = {"trace": [[n / 10, 1 - n / 20_000, 5] for n in range(10_000)]}
    text = report_html(figures)
    assert len(text) < 100_000
    assert "100 of 10,000 rows; report.json has all" in text
    assert "999.90" in text


def test_numpy_numbers_are_numbers(tmp_path):
    figures = changed(
        levels={"ilp": np.array([0, 8_455, 3])}, subscriptions=np.int64(100_000), peak_mb=np.float32(1_800)
    )
    write_report(figures, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text())["levels"] == {"ilp": [0, 8455, 3]}
    assert "Levels" in page(figures).text("h2")


def test_both_files_are_written_and_the_json_is_pretty_and_sorted(tmp_path):
    folder = tmp_path / "new" / "folder"
    write_report(FIGURES, folder)
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "report.json"]
    text = (folder / "report.json").read_text()
    assert json.loads(text) == FIGURES
    assert text == json.dumps(FIGURES, indent=2, sort_keys=True) + "\n"
    assert (folder / "report.html").read_text(encoding="utf-8") == report_html(FIGURES)


def test_what_is_not_finite_becomes_null(tmp_path):
    write_report({"gap": math.inf, "trace": [[0, math.nan]]}, tmp_path)
    assert json.loads((tmp_path / "report.json").read_text()) == {"gap": None, "trace": [[0, None]]}


def test_a_write_that_fails_leaves_the_old_report_and_nothing_beside_it(tmp_path, monkeypatch):
    write_report({"subscriptions": 1}, tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    def fail(*_):
        raise OSError("no space left")

    monkeypatch.setattr(report.os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        write_report({"subscriptions": 2}, tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before


def test_files_are_complete_before_they_get_their_names(tmp_path, monkeypatch):
    seen = []

    def replace(source, target):
        seen.append((source.parent, target.name, source.read_text(encoding="utf-8")[-8:]))
        os.rename(source, target)

    monkeypatch.setattr(report.os, "replace", replace)
    write_report({"subscriptions": 1}, tmp_path)
    assert seen == [(tmp_path, "report.json", 's": 1\n}\n'), (tmp_path, "report.html", "</html>\n")]


def test_a_logarithmic_axis_shows_a_count_of_one():
    axis = log_axis("n", 1)
    assert 0 < axis.share(1) < axis.share(10) == 1
    assert axis.share(0) == 0


def test_values_outside_an_axis_are_drawn_at_its_end():
    axis = Axis("x", 0, 10, ())
    assert [axis.share(value) for value in (-5, 0, 5, 10, 99)] == [0, 0, 0.5, 1, 1]


@given(st.floats(-1e18, 1e18), st.floats(-1e18, 1e18), st.booleans(), st.booleans())
def test_a_linear_axis_has_few_ticks_that_lie_on_it(low, high, whole, rounded):
    axis = linear_axis("x", low, high, whole=whole, rounded=rounded)
    assert axis.low < axis.high
    assert len(axis.ticks) <= 9
    span = axis.high - axis.low
    assert all(axis.low - span * 1e-6 <= value <= axis.high + span * 1e-6 for value, _ in axis.ticks)
    assert not rounded or axis.low <= low + span * 1e-6


@given(
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.text(max_size=9)), max_size=7),
    st.lists(st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9)), min_size=1, max_size=9),
)
def test_any_chart_is_xml_and_stays_in_its_frame(places, points):
    marks = [Mark(at, text, "plan") for at, text in places]
    bars = [Bar(x, x + 1, y, "best", "a < b") for x, y in points]
    x, y = linear_axis("x & y", -1e6, 1e6), linear_axis("<y>", 0, 7)
    svg = ElementTree.fromstring(plot("A 'title'", x, y, bars=bars, lines=[Line(points, "ilp")], marks=marks))
    assert svg.get("aria-label") == "A 'title'"
    _, _, width, height = map(float, svg.get("viewBox").split())
    for part in svg:
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", part.get("d", ""))]
        assert all(-1 <= n <= max(width, height) + 1 for n in numbers)


def texts_of(svg, of_class):
    return [part for part in ElementTree.fromstring(svg) if (part.get("class") or "").startswith(of_class)]


@pytest.mark.parametrize(
    ("at", "anchors"),
    [([10, 20], ["start", "start"]), ([80, 99], ["end", "end"]), ([1, 99], ["start", "end"])],
)
def test_the_text_of_a_mark_goes_where_there_is_room(at, anchors):
    axis = linear_axis("x", 0, 100)
    svg = plot("t", axis, axis, marks=[Mark(x, "a rather long text", "plan") for x in at])
    flags = texts_of(svg, "flag")
    assert [flag.get("text-anchor") for flag in flags] == anchors
    assert len({flag.get("y") for flag in flags}) == len(at)


def test_horizontal_bars_that_are_all_zero_have_no_length():
    bars = texts_of(horizontal_bars("t", "s", [("a", 0, "0 s")], tone="best"), "fill")
    assert [float(bar.get("width")) for bar in bars] == [0.8]


@given(st.text())
def test_escaped_text_is_read_back_as_it_was_but_for_what_xml_forbids(text):
    read = ElementTree.fromstring(f'<a b="{escaped(text)}">{escaped(text)}</a>')
    kept = "".join(c if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff") else "\ufffd" for c in text)
    kept = re.sub("[\ud800-\udfff]", "\ufffd", kept)
    assert (read.text or "") == kept.replace("\r\n", "\n").replace("\r", "\n")
