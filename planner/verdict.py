"""What the verifier found, and what a plan claims of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """What a plan says of itself: total utilization, and the sums of both latencies in seconds."""

    utilization: int
    latency: float
    paper_latency: float


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found. Totals are over the subscriptions that are fed, however wrong the rest is.

    By subscription: ``levels``, how many machines away from the source it is computed, 0 if it is not fed; and
    ``feeds``, how many it gives. ``pending`` names those that the configuration leaves out, ``unabsorbed`` the
    sites whose loss would leave some without a feed, and how many; neither is a fault.
    """

    faults: list[str]
    pending: list[str]
    unabsorbed: list[tuple[str, int]]
    utilization: int
    latency: float
    paper_latency: float
    levels: list[int]
    feeds: list[int]

    @property
    def ok(self) -> bool:
        """Whether there are no faults."""
        return not self.faults

    def __str__(self) -> str:
        fed, everybody = sum(level > 0 for level in self.levels), len(self.levels)
        lines = [
            f"the configuration {'holds' if self.ok else 'is wrong'}: {fed:,} of {everybody:,} subscriptions"
            f" fed, {len(self.pending):,} pending, utilization {self.utilization:,} per document,"
            f" mean latency {self.latency / max(fed, 1):.4f} s, {max(self.levels, default=0)} levels",
            *(f"fault: {fault}" for fault in self.faults),
        ]
        if self.unabsorbed:
            worst, count = max(self.unabsorbed, key=lambda site: (site[1], site[0]))
            lines.append(
                f"the loss of any of {len(self.unabsorbed):,} sites would leave some without a feed:"
                f" that of {worst} {count:,}"
            )
        return "\n".join(lines)
