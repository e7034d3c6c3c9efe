"""The report of a planning run: what it says, what it leaves out, and how it is written."""

import copy
import re

import pytest

from spark_planner.report import report_html
from tests.spark_planner.report_pages import CARDS, FIGURES, Page, changed, page, svgs


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
