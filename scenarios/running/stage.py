"""The stage of a run: hosts are laid out, the run is played on them, and judged when they are gone."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from scenarios.hosts.hosts_file import BadHosts, deal, read_hosts
from scenarios.hosts.places import Loopback, namespaces
from scenarios.hosts.remote import OverSsh, over_ssh
from scenarios.hosts.ssh import HostLost
from scenarios.hosts.tunnels import NoNamespaces
from scenarios.processes import DaemonFailed, running
from scenarios.running.cast import links_of
from scenarios.running.figures import figures_of
from scenarios.running.members import end_those_who_left
from scenarios.running.run import Run, nowhere
from scenarios.running.truth import Truth, judge
from scenarios.scenario_file import SOURCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from scenarios.hosts.places import Places
    from scenarios.processes import ProcessNetwork
    from scenarios.scenario_file import Scenario

SSH: Final = "ssh:"
_OF_LINKS: Final = ("cut", "heal", "loss", "rtt_ms")


class CannotRun(Exception):
    """The hosts cannot be laid out, or ``daemon`` did not start, whose log is with the others."""

    def __init__(self, message: str, daemon: str = "") -> None:
        super().__init__(message)
        self.daemon = daemon


def play(
    scenario: Scenario, hosts: str, folder: Path, told: Callable[[str], None],
    going: Callable[[str, int, int], None] = nowhere,
) -> dict[str, Any]:  # fmt: skip
    """Run a scenario in a folder and return its figures; all daemons are gone then, their homes and logs stay.
    What kept it from being carried through is among the violations; ``CannotRun`` if it could not begin.

    ``hosts``: namespaces, loopback, auto for the first of them that can be, or ssh: and a hosts file. ``told``
    hears of each step, ``going`` how far it is.
    """
    stage = folder / "hosts"
    stage.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            places, network = _laid_out(scenario, hosts, stage, told, stack)
            try:
                story = Run(scenario, network, places, told, going).play()
            except DaemonFailed:
                with suppress(DaemonFailed, HostLost):
                    network.collect()  # logs that are on other machines are gone with them else
                raise
            told("ending the daemons")
            network.collect()
    except DaemonFailed as exc:
        raise CannotRun(str(exc), exc.daemon) from exc
    except (HostLost, BadHosts) as exc:
        raise CannotRun(str(exc)) from exc
    told("comparing with direct matching")
    owed = list(story.owed.values())
    truth = Truth([one.pattern for one in owed], story.documents)
    stores = {name: network.store(name) for name in scenario.everybody}
    ended = end_those_who_left(story, stores)
    verdict = judge(stores, owed, story.documents, truth, network.clocks)
    for wrong in ended:
        verdict.complain(wrong)
    return figures_of(scenario, places.kind, story, verdict, truth)


def _laid_out(
    scenario: Scenario, hosts: str, stage: Path, told: Callable[[str], None], stack: ExitStack
) -> tuple[Places, ProcessNetwork]:
    """Lay the hosts out for as long as the stack stands; daemons are started later."""
    if hosts.startswith(SSH):
        _check_links(scenario)
        machines = deal(read_hosts(Path(hosts.removeprefix(SSH))), SOURCE, scenario.everybody)
        count = len(set(machines.values()))
        told(f"connecting with {count} machine{'s' if count > 1 else ''}; what lies between stays as it is")
        return OverSsh(machines), stack.enter_context(over_ssh(machines, stage))
    places = _places(scenario, hosts, told, stack)
    return places, stack.enter_context(running(stage, is_warm=True, places=places))


def _check_links(scenario: Scenario) -> None:
    """Refuse faults of links where links are not ours."""
    for i, fault in enumerate(scenario.faults):
        [kind] = fault.kinds
        if kind in _OF_LINKS:
            raise CannotRun(
                f"faults[{i}] ({fault}): over ssh links are what they are, and cannot fail on demand; leave such "
                f"faults out, or run with --hosts namespaces"
            )


def _places(scenario: Scenario, hosts: str, told: Callable[[str], None], stack: ExitStack) -> Places:
    """Lay the hosts out for as long as the stack stands."""
    if hosts == "loopback":
        return Loopback()
    common, pairs = links_of(scenario)
    try:
        return stack.enter_context(namespaces([SOURCE, *scenario.everybody], common, pairs, scenario.seed))
    except NoNamespaces as exc:
        if hosts == "namespaces":
            raise CannotRun(str(exc)) from None
        told(f"{exc}; going on with loopback, where links have no delay and cannot fail")
        return Loopback()
