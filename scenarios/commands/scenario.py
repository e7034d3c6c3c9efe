"""``distributary scenario``: whole networks with faults, run and judged."""

from __future__ import annotations

import argparse
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.output import emit
from scenarios.commands.interrupts import interrupts
from scenarios.commands.reports import folders

if TYPE_CHECKING:
    from scenarios.scenario_file import Scenario

SUMMARY: Final = "Run whole networks with faults, and judge what everybody got."
_MOST_MACHINES: Final = 5_000
_EPILOG: Final = """\
A scenario says how many hosts there are, what lies between them, what is subscribed and published, and what goes
wrong when. Each host gets a network of its own on this machine (namespaces: needs root), or all share loopback.
Afterwards everything that was delivered is compared with direct matching. Exit status: 0 if all is as expected, 1
if anything is violated, or a run could not be carried through. report.html and report.json are in
reports/NAME-TIME, or where --out says.

examples:
  distributary scenario list
  distributary scenario run quickstart
  distributary scenario run flaky-wan --hosts namespaces --out reports/flaky
  distributary scenario run my.toml --hosts loopback --json
  distributary scenario run wan-10k --set subscriptions.limit=5 --set hosts.relay=never --set plan.latency=false
  distributary scenario run my.toml --hosts ssh:machines.txt
  distributary scenario check my.toml
  distributary scenario simulate --count 200
  distributary scenario simulate --seed 71 --log
  distributary scenario simulate --machines 40
  distributary scenario simulate --minutes 30
"""
_HOSTS: Final = ("auto", "namespaces", "loopback")


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the sub-commands."""
    parser.epilog = _EPILOG
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing = commands.add_parser("list", help="list the scenarios that come with distributary")
    listing.set_defaults(run=_list)
    run = commands.add_parser("run", help="run a scenario: a shipped one by name, or a file")
    run.set_defaults(run=_run)
    simulate = commands.add_parser(
        "simulate", help="run networks in virtual time, one per seed, with drawn faults"
    )
    simulate.set_defaults(run=_simulate)
    simulate.add_argument("--seed", type=int, default=0, metavar="N", help="the first seed (0)")
    simulate.add_argument("--count", type=int, default=1, metavar="N", help="how many seeds (1)")
    simulate.add_argument(
        "--minutes", type=float, metavar="M", help="instead: as many as there is time for; inf: until Ctrl-C"
    )
    simulate.add_argument("--machines", type=int, metavar="N", help="in every network (two to five, by the seed)")
    simulate.add_argument("--log", action="store_true", help="print what happened, message by message")
    check = commands.add_parser("check", help="check a scenario's file without running it")
    check.set_defaults(run=_check)
    for one in (run, check):
        one.add_argument("scenario", help="a name from 'scenario list', or a TOML file")
        one.add_argument(
            "--set", action="append", default=[], metavar="KEY=VALUE",
            help="another value than the file's, as TOML writes it; any number of times",
        )  # fmt: skip
    run.add_argument(
        "--hosts", default="auto", metavar="WHERE",
        help="where hosts are: namespaces (root), loopback, auto: the first that this user may (auto), or "
        "ssh:FILE: on the machines that a file lists, one per line",
    )  # fmt: skip
    agent = commands.add_parser("agent", help="be a machine of a run; 'run --hosts ssh:FILE' starts it there")
    agent.add_argument("--folder", required=True, metavar="DIR", help="made, and removed at the end")
    agent.add_argument("--address", required=True, metavar="HOST", help="where daemons listen")
    agent.set_defaults(run=_agent)
    run.add_argument(
        "--out", metavar="DIR",
        help="keep the report in a folder, and the daemons' homes and logs (the report: in reports/NAME-TIME)",
    )  # fmt: skip
    run.add_argument("--seed", type=int, help="another seed than the file's")
    run.add_argument(
        "--limit", type=_limit, metavar="B", help="another limit of each subscription's feeds, or none"
    )
    for one in (listing, run, check, simulate):
        one.epilog, one.formatter_class = _EPILOG, parser.formatter_class
        one.add_argument("--json", action="store_true", help="print JSON")


def _list(arguments: argparse.Namespace) -> int:
    from scenarios.scenario_file import parse_scenario

    for name, text in sorted(_shipped().items()):
        about = parse_scenario(text, name).about
        if arguments.json:
            emit({"scenario": name, "about": about})
        else:
            print(f"{name:22} {about}")
    return 0


def _check(arguments: argparse.Namespace) -> int:
    scenario = _read(arguments.scenario, arguments.set)
    told = {"scenario": scenario.title, "hosts": scenario.hosts.count, "faults": len(scenario.faults)}
    if arguments.json:
        emit(told)
    else:
        print(f"{scenario.title}: {told['hosts']} hosts, {told['faults']} faults; nothing is wrong with it")
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from scenarios.commands.screen import screen
    from scenarios.running.stage import SSH, CannotRun, play

    scenario = _changed(_read(arguments.scenario, arguments.set), arguments)
    if arguments.hosts not in _HOSTS and not arguments.hosts.startswith(SSH):
        raise CommandError(f"--hosts {arguments.hosts}: expected one of {', '.join(_HOSTS)}, or {SSH}FILE")
    with interrupts() as gate, folders(arguments.out, scenario.title) as where, screen() as shown:
        try:
            with gate.open():
                found = play(scenario, arguments.hosts, where.stage, shown.told, shown.going)
        except CannotRun as exc:
            log = f" (its log: {where.keep_logs() / exc.daemon}.log)" if exc.daemon else ""
            raise CommandError(f"{exc}{log}") from None
        shown.told(f"the report is {where.write(found)}")
    if arguments.json:
        emit(found)
    else:
        print(summary(found))
    return 1 if found["violations"] else 0


def _agent(arguments: argparse.Namespace) -> int:
    from scenarios.hosts.agent import main

    return main(arguments.folder, arguments.address)


def _simulate(arguments: argparse.Namespace) -> int:
    """Run seed after seed; a seed that fails can be run again by itself."""
    if any(find_spec(one) is None for one in ("ortools", "pyarrow")):
        raise CommandError("simulating needs the planner: pip install 'distributary[planner]'")
    if arguments.count < 1:
        raise CommandError(f"--count {arguments.count}: expected a number from 1 up")
    if arguments.minutes is not None and not arguments.minutes > 0:  # nor is it a number
        raise CommandError(f"--minutes {arguments.minutes:g}: expected a number above 0, or inf")
    if arguments.machines is not None and not 2 <= arguments.machines <= _MOST_MACHINES:
        raise CommandError(f"--machines {arguments.machines}: expected a number from 2 to {_MOST_MACHINES:,}")
    from scenarios.simulation.soaking import soak

    def told(what: str) -> None:
        if sys.stderr.isatty():
            print(f"\r{what} ", end="", file=sys.stderr, flush=True)

    seconds = None if arguments.minutes is None else arguments.minutes * 60
    with interrupts() as gate, gate.open():
        found = soak(
            arguments.seed, arguments.count, seconds, told, machines=arguments.machines, is_logged=arguments.log
        )
    if sys.stderr.isatty():
        print(file=sys.stderr)
    if arguments.json:
        emit(found.told())
    else:
        print(found)
    if found.wrong:
        return 1
    is_cut_short = found.was_interrupted and seconds is None
    if is_cut_short:
        print(f"interrupted: {found.runs:,} of {arguments.count:,} seeds were run", file=sys.stderr)
    return 130 if is_cut_short else 0


def summary(found: dict[str, Any]) -> str:
    """Say in a few lines what came of a run."""
    delivery, latency = found["delivery_s"], found["view_latency_s"]
    levels = ", ".join(f"{count:,} at level {level}" for level, count in found["levels"].items())
    lines = [
        f"{found['delivered']:,} of {found['expected']:,} results delivered, {found['wrong']:,} wrong, "
        f"{found['gaps']:,} gaps; {found['failovers']:,} failovers.",
        f"The source fed {found['source_feeds']:,} of {found['subscriptions']:,} subscriptions; {levels}.",
    ]
    if found["relays"]:
        lines.append(f"{found['relays']:,} hosts took whole documents, and matched them themselves.")
    if found["rate"] == "full":
        load = found["load"]
        lines.append(
            f"At full load {load['documents']:,} documents were published in {load['seconds']:.0f} s, "
            f"{load['per_s']:.1f} per second; they waited for room {load['held_back']:.0%} of the time."
        )
    if delivery["count"]:
        lines.append(
            f"A document was everywhere after {delivery['avg']:.2f} s ({delivery['min']:.2f} to "
            f"{delivery['max']:.2f}), in a view after {latency['avg']:.2f} s on average."
        )
    return "\n".join([*lines, *(f"VIOLATED: {one}" for one in found["violations"])])


def _read(name: str, changes: list[str]) -> Scenario:
    """Read a shipped scenario by its name, or a file, with some values changed."""
    from scenarios.scenario_file import BadScenario, parse_scenario, read_scenario

    shipped = _shipped()
    try:
        if name in shipped:
            return parse_scenario(shipped[name], name, changes)
        if not Path(name).exists():
            raise CommandError(f"{name} is neither a file nor one of {', '.join(sorted(shipped))}")
        return read_scenario(Path(name), changes)
    except BadScenario as exc:
        raise CommandError(str(exc)) from None


def _shipped() -> dict[str, str]:
    found = files("scenarios") / "shipped"
    return {
        one.name.removesuffix(".toml"): one.read_text("utf-8")
        for one in found.iterdir()
        if one.name.endswith(".toml")
    }


def _changed(scenario: Scenario, arguments: argparse.Namespace) -> Scenario:
    """Return the scenario with what the command line says instead."""
    from msgspec.structs import replace

    if arguments.seed is not None:
        scenario = replace(scenario, seed=arguments.seed)
    if arguments.limit is not None:
        scenario = replace(scenario, subscriptions=replace(scenario.subscriptions, limit=arguments.limit))
    return scenario


def _limit(text: str) -> int | str:
    """Read a limit of feeds."""
    if text != "none" and not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 0 up, or none")
    return text if text == "none" else int(text)
