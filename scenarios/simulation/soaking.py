"""Seed after seed: how much was simulated, which faults happened, and which seeds are wrong."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from scenarios.simulation.drawn import simulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.simulation.drawn import Outcome
    from scenarios.simulation.verdicts import Violation

_MOST_LINES: Final = 500_000
_LAST_LINES: Final = 25
_MOST_TOLD: Final = 10


@dataclass(slots=True)
class Soaked:
    """What came of many runs. ``machines``: in each, if that was said. ``wrong``: by seed. ``digest``: of all that
    happened."""

    machines: int | None = None
    runs: int = 0
    simulated_s: float = 0.0
    documents: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    wrong: dict[int, list[Violation]] = field(default_factory=dict)
    events: dict[int, list[str]] = field(default_factory=dict)
    """The last events of seeds that were wrong."""
    lines: list[str] = field(default_factory=list)
    digest: str = ""
    cpu_s: float = 0.0
    was_interrupted: bool = False

    def add(self, one: Outcome, *, is_logged: bool) -> None:
        """Take a run in."""
        self.runs += 1
        self.simulated_s += one.seconds
        self.documents += one.documents
        self.faults.update(one.faults)
        self.digest = hashlib.blake2b((self.digest + one.digest).encode(), digest_size=16).hexdigest()
        if one.wrong:
            self.wrong[one.seed] = one.wrong
            if len(self.events) < _MOST_TOLD:
                self.events[one.seed] = one.lines[-_LAST_LINES:]
        if is_logged:
            self.lines += one.lines[: _MOST_LINES - len(self.lines)]

    def told(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "runs": self.runs, "simulated_hours": round(self.simulated_s / 3600, 2), "documents": self.documents,
            "faults": dict(self.faults),
            "violations": {
                str(seed): {
                    "wrong": [str(one) for one in said], "again": again(seed, self.machines),
                    "events": self.events.get(seed, []),
                }
                for seed, said in self.wrong.items()
            },
            "digest": self.digest, "cpu_s": round(self.cpu_s, 1),
        }  # fmt: skip

    def __str__(self) -> str:
        faults = ", ".join(f"{count:,} x {kind}" for kind, count in self.faults.most_common()) or "none"
        lines = [
            f"{self.runs:,} runs, {self.simulated_s / 3600:.1f} simulated hours, {self.documents:,} documents.",
            f"Faults: {faults}.",
            f"{len(self.wrong):,} runs with violations." if self.wrong else "Everybody had exactly its own.",
        ]
        for seed, events in self.events.items():
            lines += [told_wrong(seed, self.wrong[seed], [] if self.lines else events, self.machines)]
        return "\n".join([*self.lines, *lines])


def again(seed: int, machines: int | None = None) -> str:
    """Return the command that shows a seed again."""
    size = "" if machines is None else f" --machines {machines}"
    return f"distributary scenario simulate --seed {seed}{size} --log"


def told_wrong(seed: int, wrong: list[Violation], lines: list[str], machines: int | None = None) -> str:
    """Say what is wrong with a seed, how to see it again, and what happened last."""
    shown = [f"    {line}" for line in lines[-_LAST_LINES:]]
    return "\n".join([
        f"again: {again(seed, machines)}", *(f"  {one}" for one in wrong),
        *(["  the last events:", *shown] if shown else []),
    ])  # fmt: skip


def soak(
    first: int,
    count: int,
    seconds: float | None,
    told: Callable[[str], None],
    *,
    machines: int | None = None,
    is_logged: bool = False,
) -> Soaked:
    """Run seeds, so many or for so long; Ctrl-C ends it with what there is. ``is_logged``: keep every message."""
    found = Soaked(machines)
    begun, cpu = time.monotonic(), time.process_time()
    try:
        while found.runs < count if seconds is None else time.monotonic() - begun < seconds:
            one = simulate(first + found.runs, machines=machines, is_detailed=is_logged)
            found.add(one, is_logged=is_logged)
            told(
                f"{found.runs:,} runs, {found.simulated_s / 3600:.1f} simulated hours, "
                f"{found.faults.total():,} faults, {len(found.wrong):,} runs wrong"
            )
    except KeyboardInterrupt:
        found.was_interrupted = True
        told("ended")
    found.cpu_s = time.process_time() - cpu
    return found
