"""What must hold of a simulated network, one name for each check, and what is told when it does not."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Check(enum.Enum):
    """What is checked, and to which invariant it belongs."""

    ROWS = "I1, the results of direct matching"
    ORDER = "I1, once and in order"
    GAPS = "I1, no gap where nothing was lost"
    START = "I1, nothing from before the start"
    FRONTIER = "I1, no frontier goes back"
    COMPLETE = "I1, nobody waits for ever"
    SERVED = "I1, no sender promises what it has not got"
    CIRCLE = "I2, no circle"
    LIMIT = "I3, no feeder above its limit"
    ROOM = "I3, nobody is turned away while there is room"
    ACKNOWLEDGED = "I4, acknowledged is on disk"
    KEPT = "I4, what was on disk is there after a crash"
    BEYOND = "I4, nobody is ahead of the log"
    VERSION = "I5, only newer configurations are taken"
    PROPOSAL = "I5, no plan made from an older epoch is taken"
    MEMORY = "I6, bounded memory"
    CREDIT = "I6, no feed has more credit than it was granted"
    ERROR = "no error of the code itself"


@dataclass(frozen=True, slots=True)
class Violation:
    """A check that failed, and how.

    >>> print(Violation(Check.CIRCLE, "a feeds b feeds a"))
    I2, no circle: a feeds b feeds a
    """

    check: Check
    what: str

    def __str__(self) -> str:
        return f"{self.check.value}: {self.what}"


class WentWrong(Exception):
    """Something happened that must not, whatever the faults; it ends the run."""

    def __init__(self, check: Check, what: str) -> None:
        super().__init__(what)
        self.violation = Violation(check, what)
