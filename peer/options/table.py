"""The table: every option of ``source run``, ``peer run`` and ``planner run``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from peer.options.kinds import ADDRESS, FOLDER, HOST, TEXT, duration, integer, one_of, or_none, share, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peer.options.kinds import Kind

SOURCE: Final = "source"
PEER: Final = "peer"
PLANNER: Final = "planner"
DAEMONS: Final = (SOURCE, PEER, PLANNER)
_DAY_S: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class Option:
    """``--NAME``, ``DISTRIBUTARY_NAME``, and ``NAME = ...`` in the file. ``defaults``: by daemon that has it;
    ``instead``: what is said of a default that says little. ``many``: it may be given several times."""

    name: str
    kind: Kind
    defaults: Mapping[str, Any]
    help: str
    instead: str = ""
    many: bool = False
    variable: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variable", f"DISTRIBUTARY_{self.name.upper().replace('-', '_')}")

    def shown_default(self, daemon: str) -> str:
        """Say what holds if nothing is given."""
        default = self.defaults[daemon]
        return self.instead or (", ".join(map(self.kind.show, default)) if self.many else self.kind.show(default))


def _both(value: Any) -> dict[str, Any]:
    return {SOURCE: value, PEER: value}


OPTIONS: Final = (
    Option("host", HOST, _both("127.0.0.1"), "the address to listen at"),
    Option(
        "port", integer(0, 65_535, "PORT"), {SOURCE: 7411, PEER: 0}, "the port for members, TCP and UDP; 0: any"
    ),
    Option(
        "enrolment-port", integer(0, 65_535, "PORT"), {SOURCE: 7412}, "the port for machines that join; 0: any"
    ),
    Option(
        "address", ADDRESS, _both(()),
        "where others reach this machine, if not where it listens; several may be given",
        instead="host and port", many=True,
    ),
    Option(
        "http", or_none(integer(0, 65_535, "PORT")), _both(None),
        "serve HTTP on this port of 127.0.0.1 (0: any); the token for it is in the home, in http-token",
    ),
    Option(
        "feeds", or_none(integer(0, 1_000_000)), {SOURCE: None},
        "how many subscriptions the source may feed itself; fewer leaves more to the subscribers",
    ),
    Option(
        "capacity", or_none(integer(0, 1_000_000)), {PEER: None},
        "how many feeds to other machines this one bears ('distributary calibrate' measures it); 0: none",
    ),
    Option(
        "keep-bytes", size(1 << 20, 1 << 50), {SOURCE: 10 << 30, PEER: 1 << 30},
        "how much of the log (source) or of results (peer) is kept; the oldest go first",
    ),
    Option(
        "keep-age", duration(60, 3650 * _DAY_S), _both(7 * _DAY_S),
        "how long documents (source) or results (peer) are kept",
    ),
    Option(
        "timeout", duration(0.3, 600), _both(3.0),
        "a connection silent for so long is dead, and who hung on it moves on; keep-alives come at a third of it, "
        "five times more rarely where nobody is fed",
    ),
    Option(
        "away", duration(1, 365 * _DAY_S), {SOURCE: 60.0},
        "a machine that is away for so long is planned around until it returns; less moves feeds more often",
    ),
    Option(
        "window", size(64 << 10, 1 << 30), {PEER: 1 << 20},
        "how many bytes may be under way per feed; more keeps long links busy and costs memory",
    ),
    Option(
        "relay", one_of("auto", "never", "always"), {PEER: "auto"},
        "whether to take whole documents, and match them here, where that is less than what subscriptions take",
    ),
    Option(
        "every", or_none(duration(10, 365 * _DAY_S)), {PLANNER: None}, "plan at least so often",
    ),
    Option(
        "drift", or_none(share(100)), {PLANNER: 0.2},
        "plan when what the source feeds, or who is subscribed, has changed by this share since the last plan",
    ),
    Option("look", duration(0.1, _DAY_S), {PLANNER: 30.0}, "how often to ask the source whether a plan is due"),
    Option("documents", integer(1, 1000), {PLANNER: 40}, "how many of the newest documents to plan with"),
    Option("master", TEXT, {PLANNER: "local[*]"}, "the Spark master"),
    Option("time-limit", or_none(duration(0.1, _DAY_S)), {PLANNER: None}, "for solving, and for improving"),
    Option("batch-limit", duration(10, 7 * _DAY_S), {PLANNER: 7200.0}, "a batch that takes longer is ended"),
    Option("keep", or_none(FOLDER), {PLANNER: None}, "keep the last plan and its report in a folder"),
    Option(
        "log", one_of("debug", "info", "warning", "error"), {SOURCE: "warning", PEER: "warning", PLANNER: "info"},
        "what to write to standard error, as lines of JSON",
    ),
)  # fmt: skip


def options_of(daemon: str) -> list[Option]:
    """List the options of a daemon."""
    return [option for option in OPTIONS if daemon in option.defaults]


def page_rows() -> list[str]:
    """Return the rows of the table in ``docs/configuration.md``."""
    rows = []
    for one in OPTIONS:
        defaults = " / ".join(dict.fromkeys(map(one.shown_default, one.defaults)))
        rows.append(f"| `{one.name}` | {', '.join(one.defaults)} | {defaults} | {one.help} | {one.kind.allowed} |")
    return rows
