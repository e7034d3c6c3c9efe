"""The state of a live plan as arrays: as a full plan has it, so that it can be checked and planned from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rewriting.candidate_table import CandidateTable
from rewriting.pricing import Prices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.configuration import Configuration
    from planner.problem import Problem
    from rewriting.newcomer import Priced, Results


class Snapshot(NamedTuple):
    """The present state as a full plan has it: only of subscriptions on sites that are up."""

    problem: Problem
    table: CandidateTable
    prices: Prices
    configuration: Configuration


def with_more(
    table: CandidateTable, prices: Prices, more: list[tuple[int, Priced]], results: list[Results]
) -> tuple[CandidateTable, Prices, NDArray[np.int64]]:
    """Put more candidates and patterns into a table and its prices; also say where each candidate has gone."""
    classes, found = len(table.first) - 1 + len(results), [c for _, c in more]
    owner = np.concatenate(
        (np.repeat(np.arange(len(table.first) - 1), np.diff(table.first)), [q for q, _ in more])
    )
    order = np.argsort(owner.astype(np.int64), kind="stable")
    moved = np.empty(len(order), np.int64)
    moved[order] = np.arange(len(order))
    sizes = np.concatenate((np.diff(table.member_first), [len(c.views) for c in found])).astype(np.int64)
    starts = np.cumsum(sizes) - sizes
    member_first = np.concatenate(([0], np.cumsum(sizes[order])))
    at = np.arange(member_first[-1]) + np.repeat(starts[order] - member_first[:-1], sizes[order])

    def joined(old: NDArray[Any], new: list[int], by: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.concatenate((old.astype(np.int64), np.array(new, np.int64)))[by]

    members = joined(table.members, [v for c in found for v in c.views], at).astype(np.int32)
    new_table = CandidateTable(
        np.searchsorted(owner[order], np.arange(classes + 1)), joined(table.costs, [c.cost for c in found], order),
        member_first, members, table.edges, table.given_up,
    )  # fmt: skip
    new_prices = Prices(
        joined(prices.utilization, [c.utilization for c in found], order),
        joined(prices.plans, [c.plan for c in found], order).astype(np.int32),
        joined(prices.reducing, [c.reducing for c in found], order).astype(np.int32),
        joined(prices.nodes, [c.nodes for c in found], order),
        joined(prices.link_bytes, [sent for c in found for sent in c.link_bytes], at),
        *(
            np.concatenate((old, np.array(new, np.int64)))
            for old, new in zip(
                (prices.result_bytes, prices.result_nodes, prices.sources, prices.copies),
                np.array(results, np.int64).reshape(-1, 4).T, strict=True,
            )
        ),
    )  # fmt: skip
    return new_table, new_prices, moved
