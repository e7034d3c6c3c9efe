"""What can be wrong with a problem, and what can be missing to solve it."""

from __future__ import annotations


class PlannerError(Exception):
    """Base of this package's errors; the message is one line, fit to be shown to a user as it is."""


class BadProblem(PlannerError):
    """A part of the problem makes no sense; ``where`` says which, ``why`` says what is wrong with it."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"{where}: {why}")
        self.where = where
        self.why = why


class NoFeasiblePlan(PlannerError):
    """There is no plan within the limits; the reason is proven."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"there is no plan within the limits: {reason}")
        self.reason = reason


class NoPlanFound(PlannerError):
    """No plan was found, and that there is none is not proven."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"no plan was found, though there may be one: {reason}")
        self.reason = reason


class SolverMissing(PlannerError):
    """OR-Tools, which only full plans need, is not installed."""

    def __init__(self) -> None:
        super().__init__("OR-Tools is not installed; get it with: pip install 'distributary[planner]'")
