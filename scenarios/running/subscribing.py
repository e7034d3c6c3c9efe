"""Subscriptions of a run: made and ended, at hosts that are up, and noted with what they are owed."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, Any

from scenarios.running.story import RunFailed
from scenarios.running.truth import Owed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scenarios.running.cast import Wish
    from scenarios.running.daemons import Daemons
    from scenarios.running.patience import Patience
    from scenarios.running.story import Story


class Subscribing:
    """``seed`` draws whose subscriptions end."""

    def __init__(self, daemons: Daemons, story: Story, patience: Patience, seed: int) -> None:
        self._daemons, self._story, self._patience = daemons, story, patience
        self._rng = random.Random(f"{seed} faults")
        self._ending: set[str] = set()

    def add(self, wish: Wish) -> bool:
        """Subscribe, at the host that is wished or, while it is not up, at the next one; say whether it was the
        one that is wished."""
        host, told = self._patience.ask(lambda patience_s: self._subscribe(wish, patience_s))
        name = told["subscription"]
        self._story.owed[name] = Owed(name, host, wish.pattern, told["start"])
        return host == wish.host

    def add_all(self, wishes: Sequence[Wish]) -> str:
        """Subscribe one after the other, and say what came of it."""
        elsewhere = 0
        for done, wish in enumerate(wishes):
            try:
                elsewhere += not self.add(wish)
            except RunFailed as exc:
                raise RunFailed(f"{done} of {len(wishes)} subscriptions were made: {exc}") from exc
        return f"{len(wishes)} made" + (f", {elsewhere} at other hosts: theirs were not up" if elsewhere else "")

    def draw(self, count: int) -> list[Owed]:
        """Draw subscriptions to end, at hosts that are up; fewer if there are not so many."""
        up = set(self._daemons.up)
        live = [one for one in list(self._story.owed.values()) if one.end is None and one.host in up]
        live = [one for one in live if one.name not in self._ending]
        found = self._rng.sample(live, min(count, len(live)))
        self._ending |= {one.name for one in found}
        return found

    def end_all(self, drawn: Sequence[Owed], wanted: int) -> str:
        """End subscriptions one after the other, and say what came of it."""
        for done, one in enumerate(drawn):
            try:
                self._end(one)
            except RunFailed as exc:
                raise RunFailed(f"{done} of {wanted} subscriptions were ended: {exc}") from exc
        if len(drawn) < wanted:
            raise RunFailed(f"{len(drawn)} of {wanted} subscriptions were ended: hosts that are up had no more")
        return f"{wanted} ended"

    def _end(self, one: Owed) -> None:
        def ask(patience_s: float) -> dict[str, Any] | None:
            if one.host in self._story.left:
                return None  # which has ended it
            return self._daemons.one(one.host, "unsubscribe", patience_s=patience_s, subscription=one.name)

        told = self._patience.ask(ask)
        if told is not None:
            one.end, one.end_known_at = int(told["end"]), time.time()

    def _subscribe(self, wish: Wish, patience_s: float) -> tuple[str, dict[str, Any]]:
        host = self._host_for(wish.host)
        columns = [[node, what.value] for node, what in wish.pattern.selection]
        fields = {"pattern": wish.pattern.text, "columns": columns, "limit": wish.limit}
        return host, self._daemons.one(host, "subscribe", patience_s=patience_s, **fields)

    def _host_for(self, wished: str) -> str:
        hosts = self._daemons.hosts
        at = hosts.index(wished) if wished in hosts else 0
        for name in (*hosts[at:], *hosts[:at]):
            if not self._daemons.trouble(name):
                return name
        raise RunFailed("every host is away or frozen")
