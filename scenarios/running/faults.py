"""What happens in a run at its time: done to daemons, links and subscriptions, with what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scenarios.running.patience import FAILURES
from scenarios.running.story import FAILED, Happened
from scenarios.scenario_file import LARGEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.hosts.places import Places
    from scenarios.running.cast import Wish
    from scenarios.running.daemons import Daemons
    from scenarios.running.link_faults import LinkFaults
    from scenarios.running.members import Members
    from scenarios.running.patience import Errands
    from scenarios.running.plans import Plans
    from scenarios.running.story import Story
    from scenarios.running.subscribing import Subscribing
    from scenarios.timeline import Event

_OF_LINKS: Final = ("cut", "heal", "links", "links again")
LEFT_OUT: Final = "left out: "


class Faults:
    """Lets events happen, in order. Nothing here waits for long: what does is an errand."""

    def __init__(
        self, story: Story, daemons: Daemons, subscribing: Subscribing, members: Members, later: list[Wish], *,
        errands: Errands, places: Places, links: LinkFaults, plans: Plans,
    ) -> None:  # fmt: skip
        self._story, self._daemons, self._subscribing, self._later = story, daemons, subscribing, list(later)
        self._members = members
        self._errands, self._places, self._links, self._plans = errands, places, links, plans
        self._hosts_of: dict[int, list[str]] = {}

    def happen(self, event: Event, at: float) -> None:
        """Let an event happen, and note what came of it, now or when its errand is done."""
        try:
            errand = self._errand(event)
            if errand is not None:
                self._errands.send(event, at, errand)
                return
            outcome = self._do(event, at)
        except FAILURES as exc:
            outcome = f"{FAILED}{exc}"
        self._story.happened.append(Happened(at, event.shown, outcome, event.number, event.undoes))

    def heal(self) -> None:
        """Let everything pass again."""
        if self._places.is_shaped:
            self._links.heal()
            self._places.change("shape", **self._links.shape())

    def _errand(self, event: Event) -> Callable[[], str] | None:
        """Return what waits for answers, as far as it can be prepared; None if nothing does."""
        count = event.what.get("count", 0)
        match event.do:
            case "subscribe":
                wishes, self._later = self._later[:count], self._later[count:]
                return lambda: self._subscribing.add_all(wishes)
            case "unsubscribe":
                drawn = self._subscribing.draw(count)
                return lambda: self._subscribing.end_all(drawn, count)
            case "join":
                return lambda: self._members.join(event.what["hosts"])
            case "leave":
                return self._leaving(self._meant(event))
            case _:
                return None

    def _leaving(self, hosts: list[str]) -> Callable[[], str]:
        trouble = {name: self._daemons.let_go(name) for name in hosts}
        leaving = [name for name in hosts if not trouble[name]]
        left_out = [trouble[name] for name in hosts if trouble[name]]

        def leave() -> str:
            self._members.leave(leaving)
            return _told(leaving, left_out)

        return leave

    def _do(self, event: Event, at: float) -> str:
        if event.do in _OF_LINKS:
            if not self._places.is_shaped:
                return f"{LEFT_OUT}on loopback there is nothing between hosts that could fail"
            return self._to_links(event)
        if event.do == "replan":
            self._plans.begin(at, latency=event.what["latency"])
            return ""
        return self._to_daemons(event)

    def _to_daemons(self, event: Event) -> str:
        """Do something to daemons; say to whom, and who was left out and why."""
        hosts = self._meant(event)
        trouble = {name: self._to_daemon(event, name) for name in hosts}
        done = [name for name in hosts if not trouble[name]]
        self._hosts_of[event.number] = done
        return _told(done, [trouble[name] for name in hosts if trouble[name]])

    def _to_daemon(self, event: Event, name: str) -> str:
        match event.do:
            case "kill" | "stop":
                return self._daemons.end(name, event.number, at_once=event.do == "kill")
            case "start":
                return self._daemons.start(name, event.undoes)
            case "freeze":
                return self._daemons.freeze(name, event.number)
            case "thaw":
                return self._daemons.thaw(name, event.undoes)
            case other:
                raise ValueError(f"nobody here knows how to {other}")

    def _to_links(self, event: Event) -> str:
        """Begin or end a fault of links."""
        hosts: list[str] = []
        match event.do:
            case "cut":
                hosts = self._meant(event)
                if not hosts:
                    return _told([], [])
                self._links.cut(event.number, hosts)
            case "links":
                self._links.change(event.number, event.what)
            case "heal":
                self._links.heal()
            case _ if event.undoes is not None and not self._links.end(event.undoes):
                return f"{LEFT_OUT}it was over before"
        self._places.change("shape", **self._links.shape())
        return ", ".join(hosts)

    def _meant(self, event: Event) -> list[str]:
        """List the hosts that are meant: those that were hit by what is undone, or those named."""
        if event.undoes is not None:
            return self._hosts_of.get(event.undoes, [])
        found = [self._daemons.largest_feeder() if name == LARGEST else name for name in event.what["hosts"]]
        return list(dict.fromkeys(name for name in found if name is not None))


def _told(done: list[str], left_out: list[str]) -> str:
    """Say to whom something was done.

    >>> _told(["h01"], ["h02 is away"]), _told([], [])
    ('h01; left out: h02 is away', 'left out: there is no host that it could be done to')
    """
    if not done and not left_out:
        left_out = ["there is no host that it could be done to"]
    reasons = [f"{LEFT_OUT}{', '.join(left_out)}"] if left_out else []
    return "; ".join([*([", ".join(done)] if done else []), *reasons])
