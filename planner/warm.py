"""``python -m planner.warm``: compile every kernel into Numba's cache, so that first use is quick."""

from __future__ import annotations

from planner.alternatives import find_alternatives
from planner.planning import plan
from planner.problem import Problem, Subscription
from planner.repair import polish
from rewriting.provisions import provisions
from xmlmatch import Pattern

_TEXTS = ("//a{cont}", "//a[b]{cont}", "//a[b][c]{cont}", "//a{cont}", "//b{val}", "//a[b{val}]", "//a[c]/b{val}")


def warm() -> None:
    """Plan something small, with machines that host several."""
    wanted = [Subscription(f"s{i}", Pattern.parse(text), f"m{i // 2}", 1) for i, text in enumerate(_TEXTS)]
    problem = Problem.of(wanted)
    found = plan(problem)
    if found.selection.taken is not None:
        polish(found.program.choices, found.selection.taken)
    find_alternatives(problem, found.table, found.program, found.configuration)
    rewritten = found.configuration.candidate >= 0
    provisions(
        problem.graph, found.table, problem.statistics, problem.classes[rewritten],
        found.configuration.candidate[rewritten],
    )  # fmt: skip


if __name__ == "__main__":
    warm()
