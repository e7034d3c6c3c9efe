"""What the tests of reports have in common."""

import copy
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

from spark_planner.report import report_html

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


VOID = {"meta", "br"}


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
