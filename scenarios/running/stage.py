"""The stage of a run: hosts are laid out, the run is played on them, and judged when they are gone."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from scenarios.hosts.places import Loopback, namespaces
from scenarios.hosts.tunnels import NoNamespaces
from scenarios.processes import DaemonFailed, running
from scenarios.running.cast import links_of
from scenarios.running.figures import figures_of
from scenarios.running.run import Run, RunFailed
from scenarios.running.truth import Truth, judge
from scenarios.scenario_file import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from scenarios.hosts.places import Places
    from scenarios.scenario_file import Scenario


class CannotRun(Exception):
    """The hosts cannot be laid out, or a daemon did not do what it must for the run to go on."""


def play(scenario: Scenario, hosts: str, folder: Path, told: Callable[[str], None]) -> dict[str, Any]:
    """Run a scenario in a folder and return its figures; all daemons are gone then, their homes and logs stay.

    ``hosts``: namespaces, loopback, or auto for the first of them that can be.
    """
    stage = folder / "hosts"
    stage.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        places = _places(scenario, hosts, told, stack)
        network = stack.enter_context(running(stage, is_warm=True, places=places))
        try:
            story = Run(scenario, network, places, told).play()
        except (RunFailed, DaemonFailed) as exc:
            raise CannotRun(str(exc)) from exc
    told("comparing with direct matching")
    owed = list(story.owed.values())
    truth = Truth([one.pattern for one in owed], story.documents)
    stores = {name: network.home(name) / "results.sqlite" for name in scenario.names}
    verdict = judge(stores, owed, story.documents, truth)
    return figures_of(scenario, "namespaces" if places.is_shaped else "loopback", story, verdict, truth)


def _places(scenario: Scenario, hosts: str, told: Callable[[str], None], stack: ExitStack) -> Places:
    """Lay the hosts out for as long as the stack stands."""
    if hosts == "loopback":
        return Loopback()
    common, pairs = links_of(scenario)
    try:
        return stack.enter_context(namespaces([SOURCE, *scenario.names], common, pairs, scenario.seed))
    except NoNamespaces as exc:
        if hosts == "namespaces":
            raise CannotRun(str(exc)) from None
        told(f"{exc}; going on with loopback, where links have no delay and cannot fail")
        return Loopback()
