"""Prometheus' text format, version 0.0.4.

>>> print(exposition([Family("news_total", "counter", "Items.", [({"topic": 'a"b'}, 3)])]), end="")
# HELP news_total Items.
# TYPE news_total counter
news_total{topic="a\\"b"} 3
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MOST_SAMPLES: Final = 500
"""Per family: a monitoring system pays for every set of labels, for as long as it remembers."""
_NAME: Final = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL: Final = re.compile(r"(?!__)[a-zA-Z_][a-zA-Z0-9_]*")
_LONGEST: Final = 200


@dataclass(frozen=True, slots=True)
class Family:
    """Everything that is measured under one name; samples are labels and a value."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    samples: Sequence[tuple[Mapping[str, str], float]]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or (self.kind == "counter") != self.name.endswith("_total"):
            raise ValueError(f"{self.name}: not a name for a {self.kind}")
        for labels, _ in self.samples:
            if not all(_LABEL.fullmatch(label) for label in labels):
                raise ValueError(f"{self.name}: a label's name is wrong: {', '.join(labels)}")


def one(name: str, kind: Literal["counter", "gauge"], about: str, value: float) -> Family:
    """Return a family of one value without labels."""
    return Family(name, kind, about, [({}, value)])


def exposition(families: Iterable[Family]) -> str:
    """Write families as text; of each the first samples, and how many were left out."""
    found = list(families)
    omitted: list[tuple[Mapping[str, str], float]] = [
        ({"family": family.name}, len(family.samples) - MOST_SAMPLES)
        for family in found
        if len(family.samples) > MOST_SAMPLES
    ]
    if omitted:
        found.append(Family("distributary_omitted_samples", "gauge", "Samples beyond the limit.", omitted))
    return "".join(line + "\n" for family in found for line in _lines(family))


def _lines(family: Family) -> list[str]:
    about = family.help.replace("\\", "\\\\").replace("\n", "\\n")
    lines = [f"# HELP {family.name} {about}", f"# TYPE {family.name} {family.kind}"]
    for labels, value in family.samples[:MOST_SAMPLES]:
        inner = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
        lines.append(f"{family.name}{{{inner}}} {_number(value)}" if inner else f"{family.name} {_number(value)}")
    return lines


def _escaped(text: str) -> str:
    safe = text[:_LONGEST].encode("utf-8", "replace").decode()
    return safe.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
