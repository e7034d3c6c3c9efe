"""The rewritability graph (RG) as an integer program: Algorithm 1 of the Delta paper, with equal patterns as
classes.

Every subscription of a class that is the first of it on its machine is a *receiver*; the others on that machine
take over its results. A receiver is free if some candidate of its class needs only what its own machine already
gets. Of the receivers that are not free, ``fed`` are fed from outside and the others by their class, along the
feeding order: the program says how many, ``expand`` says which. The first ones are fed from outside; each of the
others needs a feed of somebody before it. So a class must have as many fed from outside as its feeds fall short
anywhere on the way (``least``), and it offers other classes what all its members' limits add up to, less what it
needs itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from planner.choices import UNBOUNDED, Choices
from planner.configuration import Configuration, How
from planner.errors import PlannerError
from planner.kernels import kernel
from rewriting.pricing import JOIN, per_document

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.problem import Problem
    from rewriting.candidate_table import CandidateTable
    from rewriting.pricing import Prices

_DUPLICATE, _RECEIVER, _FREE = range(3)
_SHARED_SITES: Final = "several patterns on one machine: what that saves is not part of the optimum"
_SITE_LIMITS: Final = "limits of machines with several subscriptions to shared patterns: split between them"
_REGIONS: Final = (
    "regions differ in round-trip time: which equal subscription feeds whom is chosen for latency only"
)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The program, and what it takes to turn a choice into a configuration.

    ``order`` lists subscriptions by class and feeding order, ``class_first`` where each class begins in it.
    ``role`` says of each subscription whether it is a receiver, free, or has a twin on its machine (``twin``).
    ``limits``: the plan limits, where a site's own is split. ``inexact``: why its optimum may not be the best
    configuration, if so.
    """

    choices: Choices
    order: NDArray[np.int64]
    class_first: NDArray[np.int64]
    role: NDArray[np.int8]
    twin: NDArray[np.int64]
    free: NDArray[np.int64]
    limits: NDArray[np.int64]
    inexact: list[str] = field(default_factory=list)


def build(problem: Problem, table: CandidateTable, prices: Prices) -> Program:
    """Make the program of a problem."""
    order = problem.order()
    classes = len(table.first) - 1
    class_first = np.searchsorted(problem.classes[order], np.arange(classes + 1))
    limits, site_rows, inexact = _site_limits(problem, class_first)
    role, twin = _receivers(problem, order)
    free = np.full(len(problem), -1, np.int64)
    if len(np.unique(np.stack((problem.sites, problem.classes)), axis=1)[0]) > len(np.unique(problem.sites)):
        inexact.append(_SHARED_SITES)
        free = _free(problem, table, role)
        role[free >= 0] = _FREE
    if len(problem.network.regions) > 1 and len(problem) > classes:
        inexact.append(_REGIONS)
    need, least, offered = _needs(problem, order, class_first, role, limits)
    choices = _choices(problem, table, prices, (need, least, offered), site_rows)
    return Program(choices, order, class_first, role, twin, free, limits, inexact)


def _site_limits(
    problem: Problem, class_first: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """Return plan limits within those of the sites, and by class the site whose limit must be kept as a row."""
    limits, rows = problem.limits.copy(), np.full(len(class_first) - 1, -1, np.int64)
    bounded = np.flatnonzero(problem.network.limits < UNBOUNDED)
    if len(bounded) == 0:
        return limits, rows, []
    alone = np.diff(class_first) == 1
    by_site = np.argsort(problem.sites, kind="stable")
    starts = np.searchsorted(problem.sites[by_site], np.arange(len(problem.network.names) + 1))
    inexact = []
    for site in bounded.tolist():
        members = by_site[starts[site] : starts[site + 1]]
        limit = int(problem.network.limits[site])
        limits[members] = np.minimum(limits[members], limit)
        if len(members) < 2 or limits[members].sum() <= limit:
            continue
        if alone[problem.classes[members]].all():
            rows[problem.classes[members]] = site
        else:
            share, rest = divmod(limit, len(members))
            limits[members] = np.minimum(limits[members], share + (np.arange(len(members)) < rest))
            inexact = [_SITE_LIMITS]
    return limits, rows, inexact


def _receivers(problem: Problem, order: NDArray[np.int64]) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
    """Mark the first of each class on each machine; the others have it as their twin."""
    key = problem.classes * len(problem.network.names) + problem.sites
    _, first, inverse = np.unique(key[order], return_index=True, return_inverse=True)
    twin = np.empty(len(problem), np.int64)
    twin[order] = order[first[inverse]]
    role = np.where(twin == np.arange(len(problem)), _RECEIVER, _DUPLICATE).astype(np.int8)
    return role, twin


def _free(problem: Problem, table: CandidateTable, role: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return, by subscription, a candidate whose views are all on its own machine; -1 if there is none."""
    sites = len(problem.network.names)
    present = np.unique(problem.classes * sites + problem.sites)
    found = np.full(len(problem), -1, np.int64)
    _find_free(
        problem.classes, problem.sites, role, table.first, table.member_first, table.members, present, sites, found
    )
    return found


@kernel
def _find_free(
    classes: Any, sites: Any, role: Any, first: Any, member_first: Any, members: Any, present: Any, count: int,
    found: Any,
) -> None:  # fmt: skip
    for s in range(classes.size):
        if role[s] != _RECEIVER:
            continue
        for c in range(first[classes[s]], first[classes[s] + 1]):
            here = True
            for i in range(member_first[c], member_first[c + 1]):
                key = members[i] * count + sites[s]
                at = np.searchsorted(present, key)
                if at == present.size or present[at] != key:
                    here = False
                    break
            if here:
                found[s] = c
                break


def _needs(
    problem: Problem, order: NDArray[np.int64], class_first: NDArray[np.int64], role: NDArray[np.int8],
    limits: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:  # fmt: skip
    """Return, by class: machines that need a feed, the least that must come from outside, feeds that it has."""
    wanting = (role[order] == _RECEIVER).astype(np.int64)
    able = np.minimum(limits[order], UNBOUNDED // 4)
    classes = problem.classes[order]
    base = class_first[:-1][classes]
    wants = np.cumsum(wanting)
    wants -= wants[base] - wanting[base]
    offers = np.concatenate(([0.0], np.cumsum(able.astype(np.float64))))
    before = offers[np.arange(len(order))] - offers[base]
    least = np.zeros(len(class_first) - 1, np.int64)
    short = np.where(wanting > 0, np.maximum(wants - np.minimum(before, 1 << 40), 0), 0).astype(np.int64)
    np.maximum.at(least, classes, short)
    need = np.add.reduceat(wanting, class_first[:-1])
    total = np.minimum(offers[class_first[1:]] - offers[class_first[:-1]], float(UNBOUNDED)).astype(np.int64)
    return need, least, total


def _choices(
    problem: Problem, table: CandidateTable, prices: Prices, needs: Any, site_rows: NDArray[np.int64]
) -> Choices:
    need, least, offered = needs
    classes, count = len(need), len(table)
    sites = np.unique(site_rows[site_rows >= 0])
    source = classes + len(sites)
    group = np.concatenate((np.repeat(np.arange(classes), np.diff(table.first)), np.arange(classes)))
    cost = np.concatenate((per_document(prices.utilization), per_document(prices.sources)))
    candidate = np.concatenate((np.arange(count), np.full(classes, -1)))
    at = np.lexsort((candidate, cost, group))
    cost, candidate, group = cost[at], candidate[at], group[at]
    owner, rows = _uses(table, candidate, source)
    if len(sites):
        limited = np.where(rows < classes, site_rows[np.minimum(rows, classes - 1)], -1)
        more = limited >= 0
        owner = np.concatenate((owner, owner[more]))
        rows = np.concatenate((rows, classes + np.searchsorted(sites, limited[more])))
        by_owner = np.argsort(owner, kind="stable")
        owner, rows = owner[by_owner], rows[by_owner]
    capacity = np.concatenate(
        (np.where(offered >= UNBOUNDED // 4, UNBOUNDED, offered - need), problem.network.limits[sites])
    )
    return Choices(
        first=np.searchsorted(group, np.arange(classes + 1)),
        cost=cost,
        row_first=np.searchsorted(owner, np.arange(len(cost) + 1)),
        rows=rows.astype(np.int32),
        candidate=candidate,
        need=need,
        least=least,
        inner=per_document(prices.copies),
        capacity=np.concatenate((capacity, [problem.source_limit])).astype(np.int64),
    )


def _uses(table: CandidateTable, candidate: NDArray[np.int64], source: int) -> tuple[Any, Any]:
    """List, column by column, the rows it uses: those of its views' classes, or the source's."""
    sizes = np.where(candidate >= 0, np.append(np.diff(table.member_first), 0)[np.maximum(candidate, 0)], 1)
    owner = np.repeat(np.arange(len(candidate)), sizes)
    upto = np.cumsum(sizes) - sizes
    start = np.where(candidate >= 0, table.member_first[np.maximum(candidate, 0)], 0)
    at = np.arange(len(owner)) + np.repeat(start - upto, sizes)
    inside = np.repeat(candidate >= 0, sizes)
    rows = np.full(len(owner), source, np.int64)
    rows[inside] = table.members[at[inside]]
    return owner, rows


def expand(
    problem: Problem, table: CandidateTable, prices: Prices, program: Program, taken: NDArray[np.int64]
) -> Configuration:
    """Turn a choice into a configuration: which members are fed how, and by which members of other classes."""
    width = max(int(np.diff(table.member_first).max(initial=1)), 1)
    count = len(problem)
    found = Configuration(np.zeros(count, np.int8), np.full(count, -1), np.full((count, width), -1, np.int32))
    sites = len(problem.network.names)
    key = problem.classes * sites + problem.sites
    by_key = np.argsort(key, kind="stable")
    spare = program.limits.copy()
    c = program.choices
    _inside(
        program.order, program.class_first, program.role, program.twin, program.free, c.first, c.candidate, taken,
        spare, found.how, found.candidate, found.inputs,
    )  # fmt: skip
    left = _outside(
        problem.sites, sites, program.order, program.class_first, table.member_first, table.members, key[by_key],
        by_key, prices.plans, program.role, spare, found.how, found.candidate, found.inputs,
    )  # fmt: skip
    if left >= 0:
        raise PlannerError(f"no feed is left for {problem.names[left]}, though the choice is within the limits")
    return found


@kernel
def _inside(
    order: Any, class_first: Any, role: Any, twin: Any, free: Any, first: Any, candidate: Any, taken: Any, spare:
    Any, how: Any, chosen: Any, inputs: Any,
) -> None:  # fmt: skip
    """Say of each member how it is fed, and let members feed each other."""
    for g in range(class_first.size - 1):
        column, used = first[g], 0
        outside = 0
        for c in range(first[g], first[g + 1]):
            outside += taken[c]
        giver = class_first[g]
        for i in range(class_first[g], class_first[g + 1]):
            s = order[i]
            if role[s] == _DUPLICATE:
                how[s], inputs[s, 0] = How.LOCAL, twin[s]
            elif role[s] == _FREE:
                how[s], chosen[s] = How.REWRITING, free[s]
            elif outside > 0:
                while used == taken[column]:
                    column, used = column + 1, 0
                used += 1
                outside -= 1
                chosen[s] = candidate[column]
                how[s] = How.SOURCE if candidate[column] < 0 else How.REWRITING
            else:
                while spare[order[giver]] == 0:
                    giver += 1
                how[s], inputs[s, 0] = How.COPY, order[giver]
                spare[order[giver]] -= 1


@kernel
def _outside(
    site: Any, sites: int, order: Any, class_first: Any, member_first: Any, members: Any, keys: Any, by_key: Any,
    plans: Any, role: Any, spare: Any, how: Any, chosen: Any, inputs: Any,
) -> int:  # fmt: skip
    """Choose members of other classes: one on the same machine, else the first with a feed left. -1 if all have.

    Where inputs are joined at another's machine, being on the receiver's own is no help.
    """
    at = class_first.copy()
    for g in range(class_first.size - 1):
        for i in range(class_first[g], class_first[g + 1]):
            s = order[i]
            if how[s] != How.REWRITING:
                continue
            c = chosen[s]
            near = role[s] == _FREE or plans[c] < JOIN
            for j in range(member_first[c + 1] - member_first[c]):
                u = members[member_first[c] + j]
                k = np.searchsorted(keys, u * sites + site[s])
                if near and k < keys.size and keys[k] == u * sites + site[s]:
                    inputs[s, j] = by_key[k]
                    continue
                while at[u] < class_first[u + 1] and spare[order[at[u]]] == 0:
                    at[u] += 1
                if at[u] == class_first[u + 1]:
                    return int(s)
                inputs[s, j] = order[at[u]]
                spare[order[at[u]]] -= 1
    return -1
