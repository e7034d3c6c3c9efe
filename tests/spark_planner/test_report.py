"""The report of a planning run: what it says, what it leaves out, and how it is written."""

import copy
import json
import math
import os
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_planner import report
from spark_planner.charts import Axis, Bar, Line, Mark, escaped, horizontal_bars, linear_axis, log_axis, plot
from spark_planner.report import report_html, write_report

SPACE = "\u00a0"
FIGURES = {
    "subscriptions": 100_000,
    "patterns": 71_234,
    "sites": 50_000,
    "outcome": "optimal",
    "gap": 0.0,
    "exact": True,
    "inexact": [],
    "pending": 0,
    "offloaded": 0.91545,
    "source": {"limit": 10_000, "plan_limit": 9_000, "feeds": 8_455},
    "limits": {"plan": "30", "improvement": "45", "hard": "54"},
    "utilization": {
        "ilp": 583_273_086,
        "ties": 583_273_086,
        "loga": 620_000_000,
        "best": 624_000_000,
        "bound": 583_273_086,
    },
    "latency_s": {"ilp": 0.21, "ties": 0.168, "loga": 0.12, "best": 0.1, "bound": 0.08},
    "paper_latency_s": {"ilp": 0.19, "loga": 0.11, "best": 0.095},
    "levels": {"ilp": [0, 8_455, 30_000, 40_000, 21_544, 1], "best": [0, 8_455, 50_000, 41_545]},
    "fan_out": {
        "feeds": [0, 1, 30, 31, 45],
        "subscriptions": [61_000, 38_000, 970, 18, 12],
        "limits": {"plan": 30, "improvement": 45, "hard": 54},
    },
    "trace": [[0, 0.21, 583_273_086], [1.5, 0.15, 600_000_000], [4, 0.1, 624_000_000]],
    "trace_marks": [[1.5, "LOGA ends"]],
    "site_utilization": {"shares": [[0.05, 0.2], [0.15, 0.4], [1, 1]]},
    "busiest_sites": [["site-1", 12_345], ["site-2", 9_000]],
    "largest_feeders": [
        {"name": "s17", "pattern": "//a{val}", "site": "site-17", "feeds": 45, "limit": 30},
        {"name": "s18", "pattern": "//b{val}", "site": "site-18", "feeds": 20, "limit": None},
    ],
    "seconds": {
        "write": 2.0,
        "normalise": 3.1,
        "statistics": 4.0,
        "candidates": 6.0,
        "solve": 30.2,
        "improve": 5.0,
        "total": 55.0,
    },
    "peak_mb": 1_800,
}
CARDS = [
    "Utilization and latency",
    "Levels before and after improvement",
    "Fan-out against the limits",
    "Latency against time",
    "Utilization against time",
    "Utilization by site",
    "Seconds by stage",
    "Busiest sites",
    "Largest feeders",
]
NEEDED_BY = {
    "levels": ["Levels before and after improvement"],
    "fan_out": ["Fan-out against the limits"],
    "trace": ["Latency against time", "Utilization against time"],
    "site_utilization": ["Utilization by site"],
    "seconds": ["Seconds by stage"],
    "busiest_sites": ["Busiest sites"],
    "largest_feeders": ["Largest feeders"],
}
VOID = {"meta", "br"}
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


class Page(HTMLParser):
    """A page as a reader meets it: texts by element, and a complaint about any tag that is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.attributes = [], {}, []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append((tag, dict(attrs).get("class")))
            self.texts.setdefault(self.open[-1], []).append("")

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop()[0] == tag

    def handle_data(self, data):
        for element in set(self.open):
            self.texts[element][-1] += data

    def text(self, tag, of_class=None):
        return [text.replace(SPACE, " ") for text in self.texts.get((tag, of_class), [])]


def page(figures):
    return Page(report_html(figures))


def svgs(text):
    """Parse every picture of a page, strictly."""
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]


def changed(**parts):
    return {**copy.deepcopy(FIGURES), **parts}


def lede(**parts):
    return page(changed(**parts)).text("p", "lede")[0]


def tiles(figures):
    """Return each tile's number and note by its name."""
    shown = page(figures)
    return dict(
        zip(shown.text("dt"), zip(shown.text("dd", "big"), shown.text("dd", "note"), strict=True), strict=True)
    )


def test_a_full_report_has_all_cards_in_order():
    assert page(FIGURES).text("h2") == CARDS


def test_the_headline_says_who_feeds_whom_how_good_it_is_and_what_improvement_did():
    assert lede() == (
        "8,455 of 100,000 subscriptions are fed by the source; the others feed each other. The choice is proven "
        "optimal: none within the limits has a lower utilization. Improvement then lowered the mean latency from "
        "210 ms to 100 ms, for 6.98 % more utilization."
    )
    assert page(FIGURES).text("p", "about") == ["100,000 subscriptions · 71,234 distinct patterns · 50,000 sites"]


def test_the_tiles_hold_the_key_numbers():
    assert tiles(FIGURES) == {
        "Fed by the source": ("8,455", "of at most 10,000; plans may use 9,000"),
        "Offloaded": ("91.55 %", "of subscriptions, not fed by the source"),
        "Choice": ("optimal", "proven by the solver"),
        "Mean latency": ("100 ms", "to a subscription; 210 ms before improvement"),
        "Utilization": ("624 M", "byte equivalents a document; 583.3 M before improvement"),
        "Planned in": ("55.0 s", "1.8 GB of memory at most"),
    }
    assert page(FIGURES).text("p", "limits") == ["Feeds per subscription, at most: plan 30 improvement 45 hard 54"]


def test_a_gap_is_rounded_up_and_never_called_optimal():
    words = lede(outcome="feasible", gap=0.00314)
    assert "not proven optimal, but at most 0.32 % above the optimum" in words
    assert tiles(changed(outcome="feasible", gap=0.00314))["Gap"][0] == "0.32 %"
    assert "at most 0.01 % above" in lede(outcome="feasible", gap=1e-9 + 1e-6)
    assert "is not known" in lede(outcome="feasible", gap=None)
    assert "optimal" not in lede(outcome="unknown")


def test_what_is_not_exact_is_said_with_its_reasons():
    shown = page(changed(exact=False, inexact=["few samples", "effort ended"]))
    assert "for a problem that is not exact in every respect" in shown.text("p", "lede")[0]
    assert shown.text("li")[:2] == ["few samples", "effort ended"]


@pytest.mark.parametrize(
    ("total", "fed", "pending", "words"),
    [
        (100, 8, 12, "8 of 100 subscriptions are fed by the source, 80 by each other, and 12 by nobody"),
        (100, 100, 0, "100 of 100 subscriptions are fed by the source. The"),
        (1, 1, 0, "1 of 1 subscription is fed by the source. The"),
        (5, 0, 0, "0 of 5 subscriptions are fed by the source; the others feed each other. The"),
    ],
)
def test_the_first_sentence_adds_up(total, fed, pending, words):
    assert lede(subscriptions=total, pending=pending, source={"feeds": fed}).startswith(words)


def test_an_unlimited_source_and_unlimited_feeders_are_said_to_be_so():
    figures = changed(source={"limit": None, "plan_limit": None, "feeds": 7})
    figures["fan_out"]["limits"] = {"plan": None, "improvement": None, "hard": None}
    assert tiles(figures)["Fed by the source"] == ("7", "no limit")
    shown = page(figures)
    assert "Fan-out" in shown.text("h2")
    assert any("20 no limit" in cell for cell in shown.text("td"))
    assert shown.text("text", "flag plan") == []


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.9999999, "more than 99.99 %"),
        (1e-7, "less than 0.01 %"),
        (-0.0, "0 %"),
        (0.5, "50 %"),
    ],
)
def test_a_share_that_is_not_all_or_nothing_never_reads_so(share, words):
    assert tiles({"offloaded": share})["Offloaded"][0] == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 ms"),
        (0.00042, "0.42 ms"),
        (0.2104, "210 ms"),
        (0.9996, "1.00 s"),
        (9.5, "9.50 s"),
        (99.97, "100.0 s"),
        (125, "2 min 5 s"),
        (3_725, "1 h 2 min"),
    ],
)
def test_durations_have_readable_units(seconds, words):
    assert tiles({"seconds": {"total": seconds}})["Planned in"][0] == words


def compared(figures):
    """Return the cells of the first table by the name of their row."""
    shown = Page(re.search(r"<tbody>.*?</tbody>", report_html(figures))[0])
    names, cells = shown.text("th"), shown.text("td")
    width = len(cells) // len(names)
    return {name: cells[n * width : (n + 1) * width] for n, name in enumerate(names)}


def test_choices_are_compared_with_the_one_that_the_solver_left():
    rows = compared(FIGURES)
    assert rows == {
        "Least utilization, as the solver left it": ["583,273,086", "210 ms", "190 ms"],
        "Ties broken by latency": ["583,273,086 ±0.0 %", "168 ms \u221220.0 %", ""],
        "After LOGA": ["620,000,000 +6.3 %", "120 ms \u221242.9 %", "110 ms \u221242.1 %"],
        "After the second pass": ["624,000,000 +7.0 %", "100 ms \u221252.4 %", "95 ms \u221250.0 %"],
        "Lower bound": ["583,273,086 ±0.0 %", "80 ms \u221261.9 %", ""],
    }
    assert list(rows)[1] == "Ties broken by latency"
    assert "one of lower latency is then preferred" in page(FIGURES).text("p", "caption")[0]


def test_a_run_that_broke_no_ties_does_not_speak_of_them():
    figures = copy.deepcopy(FIGURES)
    del figures["latency_s"]["ties"]
    assert compared(figures)["Ties broken by latency"] == ["583,273,086 ±0.0 %", "", ""]
    del figures["utilization"]["ties"]
    rows = ["Least utilization, as the solver left it", "After LOGA", "After the second pass", "Lower bound"]
    assert list(compared(figures)) == rows
    assert "preferred" not in page(figures).text("p", "caption")[0]


def test_every_tone_that_is_drawn_has_a_colour_in_light_and_in_dark():
    text = report_html(FIGURES)
    tones = set(re.findall(r'<rect class="fill (\w+)"', text))
    assert tones >= {"ilp", "ties", "loga", "best", "bound"}
    for tone in tones:
        assert f".{tone}{{color:var(--{tone})}}" in text
        assert text.count(f"--{tone}:#") == 2


def test_captions_say_what_the_pictures_show():
    levels, fan_out, latency, _, sites, stages = page(FIGURES).text("figcaption")
    assert "Least utilization, as the solver left it: 2.75 on average, 5 at most." in levels
    assert "After the second pass: 2.33 on average, 3 at most." in levels
    assert "61,000 subscriptions feed nobody." in fan_out
    assert "30 are above the plan limit." in fan_out
    assert "from 210 ms to 100 ms" in latency
    assert "busiest tenth of the sites carries 30 %" in sites  # halfway between the two points around it
    assert "the longest is solve. In total 55.0 s." in stages


def test_stages_stand_in_the_order_of_the_run_with_what_no_stage_accounts_for():
    only = {"seconds": FIGURES["seconds"]}
    names = ["normalise", "statistics", "candidates", "solve", "improve", "write", "other"]
    assert page(only).text("text", "name") == names
    assert page(only).text("text", "value")[-1] == "4.70 s"


@pytest.mark.parametrize("figures", [FIGURES, {}, changed(levels={"ilp": [0, 5]}), changed(trace=[[0, 0, 0]])])
def test_every_picture_is_xml_with_a_title_and_labelled_axes(figures):
    for svg in svgs(report_html(figures)):
        if svg.get("class") == "chart":
            assert svg.get("role") == "img"
            assert svg.get("aria-label") == svg[0].text
            assert sum(part.get("class") == "axis" for part in svg) in (1, 2)


def test_every_chart_has_a_caption_and_a_table():
    text = report_html(FIGURES)
    charts = text.count('class="chart"')
    assert charts == 6
    assert text.count("<figcaption>") == text.count("<details>") == charts
    assert text.count("<table>") == charts + 3


def test_the_page_needs_nothing_but_itself():
    text = report_html(FIGURES)
    assert [value for _, name, value in Page(text).attributes if name in ("src", "href", "srcset", "action")] == []
    assert "url(" not in text
    assert "@import" not in text
    assert "prefers-color-scheme:dark" in text


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


# Charts


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
