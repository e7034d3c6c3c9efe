"""What a subscription falls back to: its next-best rewritings, on other machines than its first choice.

Of the cheapest that share no machine with the first choice, up to three are kept, starting at a place that is
spread over subscriptions by hash: so the consumers of a machine that fails do not all turn to the same one.
Which member of a
class is asked is spread likewise. Where there are fewer, others follow that do without one of the first choice's
machines each. The source comes last, and need not be listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.configuration import Configuration
    from planner.problem import Problem
    from planner.rewritability import Program
    from rewriting.candidate_table import CandidateTable

ALTERNATIVES: Final = 3
_LOOKED_AT: Final = 6


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """By subscription, in order of preference: candidates (-1 where there are no more) and their inputs."""

    candidate: NDArray[np.int64]
    inputs: NDArray[np.int32]


def find_alternatives(
    problem: Problem, table: CandidateTable, program: Program, configuration: Configuration
) -> Alternatives:
    """Find what everybody falls back to."""
    count, width = configuration.inputs.shape
    found = Alternatives(
        np.full((count, ALTERNATIVES), -1, np.int64), np.full((count, ALTERNATIVES, width), -1, np.int32)
    )
    _find(
        problem.classes, problem.sites, configuration.candidate, configuration.inputs, table.first,
        table.member_first, table.members, program.order, program.class_first, found.candidate, found.inputs,
    )  # fmt: skip
    return found


@kernel
def _mixed(a: int, b: int) -> int:
    """Mix two numbers to one that looks random."""
    x = (a * 2654435761 + b * 40503 + 12345) & 0x7FFFFFFF
    x ^= x >> 15
    return int((x * 2246822519) & 0x7FFFFFFF)


@kernel
def _member(s: int, u: int, sites: Any, order: Any, class_first: Any, avoid: Any, used: int) -> int:
    """Choose a member of a class that is on none of the machines to avoid, nor on the subscription's; -1 if
    none."""
    size = class_first[u + 1] - class_first[u]
    start = _mixed(s, u) % size
    for i in range(min(size, 8)):
        m = order[class_first[u] + (start + i) % size]
        clash = sites[m] == sites[s]
        for k in range(used):
            clash = clash or avoid[k] == sites[m]
        if not clash:
            return int(m)
    return -1


@kernel
def _find(
    classes: Any, sites: Any, chosen: Any, inputs: Any, first: Any, member_first: Any, members: Any, order: Any,
    class_first: Any, candidate: Any, out: Any,
) -> None:  # fmt: skip
    width = inputs.shape[1]
    avoid, good = np.empty(width, np.int64), np.empty(_LOOKED_AT, np.int64)
    trial = np.empty((_LOOKED_AT, width), np.int32)
    for s in range(classes.size):
        used = 0
        for j in range(width):
            if inputs[s, j] >= 0:
                avoid[used] = sites[inputs[s, j]]
                used += 1
        q, found = classes[s], 0
        for c in range(first[q], first[q + 1]):
            if found == _LOOKED_AT:
                break
            if c != chosen[s] and _realise(
                s, c, sites, member_first, members, order, class_first, avoid, used, trial[found]
            ):
                good[found] = c
                found += 1
        start = _mixed(s, q) % found if found > 0 else 0
        kept = min(found, candidate.shape[1])
        for i in range(kept):
            at = (start + i) % found
            candidate[s, i] = good[at]
            out[s, i, :] = trial[at]
        for k in range(used):
            if kept == candidate.shape[1]:
                break
            avoid[0], avoid[k] = avoid[k], avoid[0]
            for c in range(first[q], first[q + 1]):
                if c != chosen[s] and not _is_in(candidate[s], kept, c) and _realise(
                    s, c, sites, member_first, members, order, class_first, avoid, 1, trial[0]
                ):  # fmt: skip
                    candidate[s, kept] = c
                    out[s, kept, :] = trial[0]
                    kept += 1
                    break


@kernel
def _is_in(numbers: Any, count: int, number: int) -> bool:
    for i in range(count):
        if numbers[i] == number:
            return True
    return False


@kernel
def _realise(
    s: int, c: int, sites: Any, member_first: Any, members: Any, order: Any, class_first: Any, avoid: Any, used:
    int, out: Any,
) -> bool:  # fmt: skip
    """Choose inputs for a candidate that avoid some machines; False if a view has no such member."""
    out[:] = -1
    for j in range(member_first[c + 1] - member_first[c]):
        out[j] = _member(s, members[member_first[c] + j], sites, order, class_first, avoid, used)
        if out[j] < 0:
            return False
    return True
