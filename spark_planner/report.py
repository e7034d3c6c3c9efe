"""The report of a planning run: its figures as JSON, and as one HTML page that needs nothing but itself.

A page is a headline in plain words, key numbers, and one card per picture. A card whose figures are missing, or
not of the form expected, is left out: a report comes at the end of a long run and must not be what fails.
Pictures are drawn by ``charts``; below each stand its numbers as a table, for all who cannot or will not see it.
"""

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from spark_planner.report_comparison import comparison_card, levels_card
from spark_planner.report_fan_out import fan_out_card, feeders_card
from spark_planner.report_figures import plain
from spark_planner.report_headline import headline
from spark_planner.report_seconds import seconds_card
from spark_planner.report_sites import busiest_card, site_curve_card
from spark_planner.report_style import STYLE
from spark_planner.report_traces import latency_card, utilization_card

# The policy lets the page load nothing at all, whatever a name or a pattern might smuggle in.
_HEAD: Final = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Plan report</title>
<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>{STYLE}</style></head>
"""

_FOOTER: Final = """<footer><p><b>Feed</b>: one subscription, or the source, serving a subscription on another
machine. <b>Utilization</b>: what a document costs all machines together, in bytes sent and received, with the work
of handling them weighed as bytes. <b>Latency</b>: from publication until a subscription has what it asked
for.</p></footer>"""


def report_html(figures: Mapping[str, Any]) -> str:
    """Return the page; parts of the figures may be missing."""
    known = plain(figures)
    cards = [
        comparison_card(known),
        levels_card(known),
        fan_out_card(known),
        latency_card(known),
        utilization_card(known),
        site_curve_card(known),
        seconds_card(known),
        busiest_card(known),
        feeders_card(known),
    ]
    body = f'{headline(known)}<main class="cards">{"".join(cards)}</main>{_FOOTER}'
    return f"{_HEAD}<body>{body}</body></html>\n"


def write_report(figures: Mapping[str, Any], folder: Path) -> None:
    """Write report.json and report.html; a reader sees the old file or the new one, never a part."""
    files = {
        "report.json": json.dumps(plain(figures), indent=2, sort_keys=True) + "\n",
        "report.html": report_html(figures),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        _replace(folder / name, text)


def _replace(path: Path, text: str) -> None:
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with unfinished.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
