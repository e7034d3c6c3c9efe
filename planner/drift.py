"""How far a plan has drifted from what its subscriptions need at least, kept up to date with every change."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.choices import UNBOUNDED
from planner.lagrangian import best_columns
from rewriting.statistics import DOCUMENTS

if TYPE_CHECKING:
    from planner.newcomer import Member
    from planner.planning import Plan
    from rewriting.newcomer import Priced


class Bound:
    """A lower bound on the utilization of the present subscriptions, kept up to date, and the drift from it.

    For any prices p >= 0 of the rows of the integer program (``planner.choices``), no plan costs less than

        sum over patterns g of  min over fed of  inner[g] (need[g] - fed) + fed (value[g] - p[g])
            - sum over rows r of  p[r] capacity[r],

    where ``value[g]`` is the least of g's columns with the prices of the rows they use: capacities that are
    exceeded are paid for, those that are left over are paid back (``planner.lagrangian``). That holds for the
    present program with the plan's prices too; they are just no longer the best ones. A pattern's need, offers
    and columns stand in its own term only, so a change is a new term: a newcomer adds its least reduced cost,
    one that goes takes its own away. The row of a new pattern has the price 0, and so has that of one without a
    limit. Left out, which only lowers the bound: prices of sites; in which order equal ones feed each other, but
    that the first needs another feed; that views are gone.

    It bounds plans within the plan limits and the candidates listed; while a machine has several patterns, for
    which the program is not exact (``Plan.is_exact``), it is an estimate. Plans spend a little more than the least
    on latency: *drift* is how much further the utilization is from the bound than that of the plan was.
    """

    def __init__(self, plan: Plan) -> None:
        choices, prices = plan.program.choices, plan.selection.prices.copy()
        groups = choices.groups
        prices[groups:-1] = 0
        prices[choices.capacity >= UNBOUNDED // 2] = 0
        value = np.zeros(groups)
        best_columns(choices.arrays, prices, np.zeros(groups, np.int64), value)
        self._choices = choices
        self._users: dict[int, set[int]] = {}
        self._price: list[float] = prices[:groups].tolist()
        self._source_price = float(prices[-1])
        self._value: list[float] = value.tolist()
        self._inner: list[int] = choices.inner.tolist()
        self._need, self._machines, self._offered = [0] * groups, [0] * groups, [0] * groups
        self._terms = [0.0] * groups
        self._needing: set[tuple[int, int]] = set()
        self.total = -self._source_price * float(choices.capacity[-1]) if self._source_price else 0.0
        self._planned = 1.0

    def start(self, utilization: int) -> None:
        """Take the present utilization for the one to compare with."""
        self._planned = utilization / self.total if self.total > 0 else 1.0

    def drift(self, utilization: int) -> float:
        """Return how much further a utilization is from the bound than the plan was, as a share."""
        if self.total <= 0:
            return float("inf") if utilization > 0 else 0.0
        return utilization / self.total / self._planned - 1

    def open(self, pattern: int, source: int, copy: int) -> None:
        """Take a new pattern in, with what it costs from the source and as a copy."""
        self._price.append(0.0)
        self._value.append(source + self._source_price)
        self._inner.append(copy)
        for counts in (self._need, self._machines, self._offered):
            counts.append(0)
        self._terms.append(0.0)

    def offer(self, pattern: int, c: Priced) -> None:
        """Take a candidate into account that was listed."""
        for view in c.views:
            self._users.setdefault(view, set()).add(pattern)
        value = -(-c.utilization // DOCUMENTS) + sum(self._price[view] for view in c.views)
        if value < self._value[pattern]:
            self._value[pattern] = value
            self._renew(pattern)

    def count(self, m: Member, sign: int, offers: int, *, alone: bool) -> None:
        """Count a subscription in (1) or out (-1); ``alone``: no other to its pattern is on its machine."""
        g, key = m.pattern, (m.pattern, m.site)
        self._offered[g] += sign * offers
        if alone:
            self._machines[g] += sign
            if sign < 0:
                self._need[g] -= key in self._needing
                self._needing.discard(key)
            elif not m.is_free:
                self._need[g] += 1
                self._needing.add(key)
        if self._offered[g] >= UNBOUNDED // 2 and self._price[g] > 0:
            self._give_away(g)
        self._renew(g)

    def _give_away(self, g: int) -> None:
        """Set the price of a row to 0; whoever can use it gets cheaper by no more than that."""
        choices, price = self._choices, self._price[g]
        columns = np.searchsorted(choices.row_first, np.flatnonzero(choices.rows == g), side="right") - 1
        users = np.unique(np.searchsorted(choices.first, columns, side="right") - 1).tolist()
        self._price[g] = 0.0
        for user in self._users.get(g, set()).union(users):
            self._value[user] -= price
            self._renew(user)

    def _renew(self, g: int) -> None:
        need, price, inner = self._need[g], self._price[g], self._inner[g]
        own = self._value[g] - price
        # The first one of a pattern cannot be fed by an equal one; nor can more than those have feeds.
        least = max(need - self._offered[g], min(need, 1) if self._machines[g] == need else 0)
        fed = need if own < inner else least
        term = inner * (need - fed) + fed * own - price * (self._offered[g] - need)
        self.total += term - self._terms[g]
        self._terms[g] = term
