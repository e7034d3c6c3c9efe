"""Machines that join a running network, and machines that leave it for good.

Who leaves says itself where its subscriptions end: that is read from its store afterwards, and must not be before
what was published when it was asked to leave.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Final

from scenarios.running.story import Left, RunFailed
from scenarios.scenario_file import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from scenarios.running.cast import Wish
    from scenarios.running.daemons import Daemons
    from scenarios.running.patience import Patience
    from scenarios.running.story import Story
    from scenarios.running.subscribing import Subscribing
    from scenarios.scenario_file import Scenario

_HAND_OVER_S: Final = 60.0
"""How long others may take to take over from who leaves."""


def peer_options(scenario: Scenario) -> tuple[str, ...]:
    """Return what every host's daemon is started with."""
    part = scenario.hosts
    capacity = () if part.capacity is None else ("--capacity", str(part.capacity))
    return "--relay", part.relay, *capacity, "--timeout", str(part.timeout_s)


class Members:
    """``wishes``: what each host that joins later subscribes to."""

    def __init__(
        self, story: Story, daemons: Daemons, subscribing: Subscribing, patience: Patience, *,
        options: tuple[str, ...], wishes: Mapping[str, Sequence[Wish]],
    ) -> None:  # fmt: skip
        self._story, self._daemons, self._subscribing, self._patience = story, daemons, subscribing, patience
        self._options, self._wishes = options, wishes

    def join(self, names: Sequence[str]) -> str:
        """Let hosts join one after the other, and subscribe; say what came of it."""
        network, made = self._daemons.network, []
        for name in names:
            try:
                self._patience.ask(self._enrol(name))
                network.begin_peer(name, *self._options)
                network.await_ready(name)
                self._daemons.hosts.append(name)
                told = self._subscribing.add_all(self._wishes[name])
            except RunFailed as exc:
                raise RunFailed(f"{name}: {exc}") from exc
            made.append(f"{name}: {told}")
        return "; ".join(made)

    def _enrol(self, name: str) -> Callable[[float], None]:
        def enrol(patience_s: float) -> None:
            asked = {"site": name, "roles": ["subscriber"], "hours": 1}
            token = self._daemons.one(SOURCE, "invite", patience_s=patience_s, **asked)["token"]
            self._daemons.network.enrol(name, token)

        return enrol

    def leave(self, names: Sequence[str]) -> str:
        """Let hosts leave one after the other, which are no longer asked anything else; say who did."""
        for name in names:
            last = max((one.number for one in self._story.documents), default=0)
            self._daemons.count(name, is_leaving=True)
            try:
                self._patience.ask(self._resign(name))
            except RunFailed as exc:
                self._daemons.hosts.append(name)
                raise RunFailed(f"{name}: {exc}") from exc
            self._daemons.network.stop(name)
            self._story.left[name] = Left(last, time.time())
        return ", ".join(names)

    def _resign(self, name: str) -> Callable[[float], None]:
        def resign(patience_s: float) -> None:
            wait = min(_HAND_OVER_S, self._patience.seconds)
            self._daemons.many(name, "leave_network", patience_s=patience_s, wait=wait, force=False)

        return resign


def end_those_who_left(story: Story, stores: Mapping[str, Path]) -> list[str]:
    """Note where the subscriptions of hosts that have left end; return what is wrong with that."""
    wrong = []
    for host, left in story.left.items():
        ends = _ends_in(stores[host])
        for one in [one for one in story.owed.values() if one.host == host and one.end is None]:
            end = ends.get(one.name)
            if end is None or end < left.after:
                where = "nowhere" if end is None else f"with {end}"
                wrong.append(f"{one.name} at {host}, which left after {left.after}, ends {where}")
            one.end, one.end_known_at = left.after if end is None else end, left.at
    return wrong


def _ends_in(store: Path) -> dict[str, int]:
    if not store.exists():
        return {}
    with closing(sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT id, end_number FROM hosted WHERE end_number IS NOT NULL")
        return dict(rows.fetchall())
