"""Seed after seed: how much was simulated, which faults happened, and which seeds are wrong."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from scenarios.simulation.drawn import simulate

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True)
class Soaked:
    """What came of many runs. ``wrong``: by seed."""

    runs: int = 0
    simulated_s: float = 0.0
    documents: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, list[str]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    cpu_s: float = 0.0

    def told(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "runs": self.runs, "simulated_hours": round(self.simulated_s / 3600, 2), "documents": self.documents,
            "faults": dict(self.faults), "violations": {str(seed): said for seed, said in self.wrong.items()},
            "cpu_s": round(self.cpu_s, 1),
        }  # fmt: skip

    def __str__(self) -> str:
        faults = ", ".join(f"{count:,} x {kind}" for kind, count in self.faults.most_common()) or "none"
        lines = [
            f"{self.runs:,} runs, {self.simulated_s / 3600:.1f} simulated hours, {self.documents:,} documents.",
            f"Faults: {faults}.",
            f"{len(self.wrong):,} runs with violations." if self.wrong else "Everybody had exactly its own.",
        ]
        for seed, said in self.wrong.items():
            lines += [f"again: distributary scenario simulate --seed {seed} --log", *(f"  {one}" for one in said)]
        return "\n".join([*self.lines, *lines])


def soak(
    first: int, count: int, seconds: float | None, told: Callable[[str], None], *, is_logged: bool = False
) -> Soaked:
    """Run seeds, so many or for so long; Ctrl-C ends it with what there is."""
    found = Soaked()
    begun, cpu = time.monotonic(), time.process_time()
    try:
        while found.runs < count if seconds is None else time.monotonic() - begun < seconds:
            one = simulate(first + found.runs)
            found.runs += 1
            found.simulated_s += one.seconds
            found.documents += one.documents
            found.faults.update(one.faults)
            if one.wrong:
                found.wrong[one.seed] = one.wrong
            if is_logged:
                found.lines += one.lines
            told(f"{found.runs:,} runs, {len(found.wrong):,} wrong")
    except KeyboardInterrupt:
        told("ended")
    found.cpu_s = time.process_time() - cpu
    return found
