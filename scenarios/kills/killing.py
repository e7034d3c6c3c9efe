"""Who is killed, and when: at random, and right after something that is hard to survive has begun."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from scenarios.processes import SOURCE

if TYPE_CHECKING:
    import random

    from scenarios.kills.moments import Moments
    from scenarios.processes import ProcessNetwork

AIMS: Final = ("publish", "serve", "subscribe", "unsubscribe", "adopt", "greet", "any")
_PATIENCE_S: Final = 3.0
_GREETING_S: Final = 0.4


@dataclass(slots=True)
class Killing:
    """Kills daemons and starts them again. ``kills``: how many processes, by aim and by whose they were."""

    network: ProcessNetwork
    moments: Moments
    peers: list[str]
    rng: random.Random
    kills: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        """How many processes were killed."""
        return sum(self.kills.values())

    def strike(self) -> list[str]:
        """Kill once, one daemon or several, and start them again; return who it was."""
        aim, victims = self.rng.choice(AIMS), self._victims()
        if aim in ("publish", "adopt") and self.rng.random() < 0.6:
            victims = [SOURCE]  # it is the one that does these
        if aim == "greet":
            self._kill("any", victims)
            self._begin(victims)
            time.sleep(self.rng.random() * _GREETING_S)  # it is loading, or greeting, or has just greeted
        elif aim != "any":
            self.moments.wait(aim, _PATIENCE_S)
            time.sleep(self.rng.choice([0.0, 0.002, 0.01, 0.05]) * self.rng.random())
        else:
            time.sleep(self.rng.random() * 0.3)
        self._kill(aim, victims)
        time.sleep(self.rng.choice([0.0, 0.0, 0.3, 1.0]) * self.rng.random())
        self._begin(victims)
        for name in victims:
            self.network.await_ready(name)
        return victims

    def _victims(self) -> list[str]:
        everybody = [*self.peers, SOURCE]
        count = self.rng.choices([1, 2, len(everybody)], [80, 17, 3])[0]
        return self.rng.sample(everybody, count)

    def _kill(self, aim: str, victims: list[str]) -> None:
        for name in victims:
            self.network.kill(name)
            self.kills[f"{aim} {'source' if name == SOURCE else 'peer'}"] += 1

    def _begin(self, victims: list[str]) -> None:
        for name in victims:
            if name == SOURCE:
                self.network.begin_source()
            else:
                self.network.begin_peer(name)
