"""What is wrong with a scenario that types cannot say: who is not there, what happens to whom when it cannot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scenarios.scenario_file import LARGEST, SOURCE, BadScenario
from scenarios.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from scenarios.scenario_file import DocumentsPart, Fault, Scenario
    from scenarios.timeline import Event

_OF_HOSTS: Final = ("kill", "stop", "start", "freeze", "thaw", "cut", "leave")
_UNDONE: Final = ("kill", "stop", "freeze", "cut", "loss", "rtt_ms")
_UP: Final = "up"
_NOT_YET: Final = "not there yet"
_LEAVES: Final = {"kill": "away", "stop": "away", "freeze": "frozen", "join": _UP, "leave": "gone"}
"""How a host is after something was done to it."""
_ENDS: Final = {"start": "away", "thaw": "frozen"}
_NEEDS: Final = {
    "kill": (_UP, "frozen"), "stop": (_UP,), "freeze": (_UP,), "leave": (_UP,), "join": (_NOT_YET,),
}  # fmt: skip
"""How a host must be for something to be done to it."""


def check(scenario: Scenario) -> None:
    """Raise ``BadScenario`` for the first thing that is wrong."""
    hosts = set(scenario.names)
    low, high = scenario.links.range_ms
    if low > high:
        raise BadScenario("links.rtt_ms: the least comes first")
    if not scenario.subscriptions.count and not scenario.subscriptions.listed:
        raise BadScenario("subscriptions: say a count, or list some")
    _check_documents(scenario.documents)
    for i, pair in enumerate(scenario.links.between):
        where = f"links.between[{i}].hosts"
        _known(pair.hosts, {SOURCE, *scenario.everybody}, where)
        _once(pair.hosts, where)
    for i, one in enumerate(scenario.subscriptions.listed):
        _known([one.host], hosts, f"subscriptions.listed[{i}].host")
        _check_pattern(one.pattern, f"subscriptions.listed[{i}].pattern")
    for i, fault in enumerate(scenario.faults):
        _check_fault(fault, {SOURCE, *scenario.everybody}, f"faults[{i}]")
    _check_states(scenario)


def _check_documents(part: DocumentsPart) -> None:
    """Refuse what means nothing at the rate that is said."""
    if part.per_s is not None:
        for name in ("seconds", "ahead"):
            if getattr(part, name) is not None:
                raise BadScenario(f'documents.{name}: it goes with rate = "full"; leave it out, and say a count')
        return
    if part.count is not None:
        raise BadScenario('documents.count: at rate = "full" the network says how many; leave it out')
    if part.seconds is None:
        raise BadScenario('documents.seconds: say for how long, since rate = "full"')


def _check_fault(fault: Fault, hosts: AbstractSet[str], where: str) -> None:
    if len(fault.kinds) != 1:
        said = ", ".join(fault.kinds) or "nothing"
        raise BadScenario(f"{where}: one thing happens at a time, and this says {said}")
    [kind] = fault.kinds
    if fault.seconds and kind not in _UNDONE:
        raise BadScenario(f"{where}.seconds: {kind} is not undone; leave seconds out")
    if kind in _OF_HOSTS:
        names = getattr(fault, kind)
        _once(names, f"{where}.{kind}")
        if LARGEST in names and kind in ("start", "thaw"):
            raise BadScenario(f"{where}.{kind}: {LARGEST} is one that runs; name a host, or say seconds above")
        if kind == "leave" and SOURCE in names:
            raise BadScenario(f"{where}.leave: a network cannot do without its source")
        _known(names, hosts | {LARGEST}, f"{where}.{kind}")


def _check_states(scenario: Scenario) -> None:
    """Go through what happens, and refuse what is done to a host that is then known to be away or frozen."""
    states: dict[str, tuple[str, Event | None]] = {
        name: (_NOT_YET, None) for names in scenario.joining for name in names
    }
    for event in timeline(scenario):
        for name in event.what.get("hosts", ()):
            state, since = states.get(name, (_UP, None))
            if event.do in _NEEDS and name != LARGEST:
                if state not in _NEEDS[event.do]:
                    raise BadScenario(
                        f"faults[{event.fault}].{event.do}: at {event.at:g} s {name} is {state}{_since(since)}"
                    )
                states[name] = _LEAVES[event.do], event
            elif since is not None and state == _ENDS.get(event.do) and event.undoes in (None, since.number):
                states.pop(name)
    _check_source(scenario, *states.get(SOURCE, (_UP, None)))


def _since(event: Event | None) -> str:
    return "" if event is None else f" since {event.at:g} s (faults[{event.fault}])"


def _check_source(scenario: Scenario, state: str, since: Event | None) -> None:
    """Refuse a source that never comes back while there are documents to publish."""
    if since is not None and since.at <= scenario.documents.last_s:
        raise BadScenario(
            f"faults[{since.fault}].{since.do}: the source is {state} for good, and documents are still to be "
            f"published; say seconds"
        )


def _once(names: list[str], where: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise BadScenario(f"{where}: {name} is said twice")


def _known(names: list[str], hosts: AbstractSet[str], where: str) -> None:
    for name in names:
        if name not in hosts:
            known = sorted(hosts)
            some = ", ".join(known[:4]) + (" ..." if len(known) > 4 else "")
            raise BadScenario(f"{where}: there is no host {name}; there are {some}")


def _check_pattern(text: str, where: str) -> None:
    from xmlmatch import Pattern, PatternError

    try:
        Pattern.parse(text)
    except PatternError as exc:
        raise BadScenario(f"{where}: {exc}") from None
