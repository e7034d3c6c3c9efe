"""When what happens in a scenario: faults, their ends, and plans, in order of time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenarios.scenario_file import Fault, Scenario

_UNDONE_BY = {"kill": "start", "stop": "start", "freeze": "thaw"}


@dataclass(frozen=True, slots=True, order=True)
class Event:
    """``do`` happens ``at`` seconds after the first document. ``undoes``: the event that this one ends, by number;
    its hosts are meant, whoever they were. ``fault``: the fault that it is of, by its place in the file."""

    at: float
    number: int
    do: str = field(compare=False)
    what: dict[str, Any] = field(compare=False, default_factory=dict)
    undoes: int | None = field(compare=False, default=None)
    shown: str = field(compare=False, default="")
    fault: int | None = field(compare=False, default=None)


def timeline(scenario: Scenario) -> list[Event]:
    """List what happens, in order.

    >>> from scenarios.scenario_file import Fault, Replan, Scenario
    >>> faults = [Fault(at=5.0, kill=["h01"], seconds=3.0), Fault(at=2.0, loss=0.1, seconds=1.0)]
    >>> [(e.at, e.do) for e in timeline(Scenario(title="x", faults=faults, replans=[Replan(at=4.0)]))]
    [(2.0, 'links'), (3.0, 'links again'), (4.0, 'replan'), (5.0, 'kill'), (8.0, 'start')]
    """
    events: list[Event] = []
    for place, (fault, joining) in enumerate(zip(scenario.faults, scenario.joining, strict=True)):
        events += [replace(event, fault=place) for event in _events(fault, joining, len(events))]
    for replan in scenario.replans:
        how = "" if replan.latency else " without LOGA"
        events.append(Event(replan.at, len(events), "replan", {"latency": replan.latency}, shown=f"replan{how}"))
    return sorted(events)


def _events(fault: Fault, joining: list[str], number: int) -> list[Event]:
    [kind] = fault.kinds
    shown, end = str(fault), fault.at + fault.seconds
    match kind:
        case "loss" | "rtt_ms":
            changed: dict[str, Any] = {kind: getattr(fault, kind)}
            before = Event(end, number + 1, "links again", {}, number, f"{kind} as before")
            found = [Event(fault.at, number, "links", changed, shown=shown), before]
        case "cut":
            found = [
                Event(fault.at, number, "cut", {"hosts": fault.cut}, shown=shown),
                Event(end, number + 1, "links again", {}, number, f"heal {', '.join(fault.cut)}"),
            ]
        case "heal":
            return [Event(fault.at, number, "heal", {}, shown=shown)]
        case "join":
            return [Event(fault.at, number, kind, {"hosts": joining}, shown=shown)]
        case "subscribe" | "unsubscribe":
            return [Event(fault.at, number, kind, {"count": getattr(fault, kind)}, shown=shown)]
        case _:
            hosts = getattr(fault, kind)
            found = [Event(fault.at, number, kind, {"hosts": hosts}, shown=shown)]
            if kind in _UNDONE_BY:
                undo = _UNDONE_BY[kind]
                found.append(Event(end, number + 1, undo, {"hosts": hosts}, number, f"{undo} {', '.join(hosts)}"))
    return found if fault.seconds else found[:1]
