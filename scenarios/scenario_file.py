"""Scenario files: hosts, links, subscriptions, documents, plans, faults and what is expected, in TOML.

Everything has a default; what a file says is checked before anything is started, and an error names the place in
the file. ``docs/scenarios.md`` lists all keys.
"""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SOURCE: Final = "source"
_Seconds = Annotated[float, msgspec.Meta(ge=0, le=86_400)]
_Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
_Milliseconds = Annotated[float, msgspec.Meta(ge=0, le=60_000)]
_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
_Limit = Annotated[int, msgspec.Meta(ge=0)] | Literal["none"]
_Names = Annotated[list[_Name], msgspec.Meta(min_length=1)]
_DOCUMENTS: Final = 20


class BadScenario(Exception):
    """A scenario that cannot be run; the message says where in the file, and what is wrong."""


class _Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class Between(_Part, frozen=True):
    """What lies between two hosts, where it differs from the rest; what is not said is as there."""

    hosts: Annotated[list[_Name], msgspec.Meta(min_length=2, max_length=2)]
    rtt_ms: _Milliseconds | None = None
    jitter_ms: _Milliseconds | None = None
    mbit: Annotated[float, msgspec.Meta(gt=0)] | None = None
    loss: _Share | None = None

    @property
    def changes(self) -> dict[str, Any]:
        """What differs."""
        said = {name: getattr(self, name) for name in ("rtt_ms", "jitter_ms", "mbit", "loss")}
        return {name: value for name, value in said.items() if value is not None}


class LinksPart(_Part, frozen=True):
    """What lies between hosts. ``rtt_ms``: a round trip, or the least and the most of one drawn for each pair."""

    rtt_ms: _Milliseconds | Annotated[list[_Milliseconds], msgspec.Meta(min_length=2, max_length=2)] = 0.0
    jitter_ms: _Milliseconds = 0.0
    mbit: Annotated[float, msgspec.Meta(gt=0)] | None = None
    loss: _Share = 0.0
    between: list[Between] = []

    @property
    def range_ms(self) -> tuple[float, float]:
        """The least and the most round trip."""
        return tuple(self.rtt_ms) if isinstance(self.rtt_ms, list) else (self.rtt_ms, self.rtt_ms)  # type: ignore[return-value]  # two of them


class HostsPart(_Part, frozen=True):
    """The subscribers' machines, called ``h00``, ``h01`` ...; ``capacity``: how many feeds each bears. ``relay``:
    whether they take whole documents, and match them themselves. ``timeout_s``: how long a machine may be silent
    before the others, the source among them, take it for dead."""

    count: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 4
    capacity: Annotated[int, msgspec.Meta(ge=0)] | None = None
    relay: Annotated[str, msgspec.Meta(pattern="^(auto|never|always)$")] = "auto"
    timeout_s: Annotated[float, msgspec.Meta(ge=0.3, le=600)] = 3.0


class Listed(_Part, frozen=True):
    """One subscription. ``limit``: if not that of all."""

    host: _Name
    pattern: str
    limit: _Limit | None = None


class SubscriptionsPart(_Part, frozen=True):
    """``count`` subscriptions of a preset, spread over the hosts in turns, besides those listed. ``limit``: how
    many others each may feed (B), or "none": any number."""

    preset: Annotated[str, msgspec.Meta(pattern="^(wan|table2)$")] = "wan"
    count: Annotated[int, msgspec.Meta(ge=0, le=1_000_000)] = 0
    limit: _Limit = "none"
    listed: list[Listed] = []

    def most_feeds(self, one: Listed | None = None) -> int | None:
        """Return how many others a subscription may feed, a listed one or any other; None: any number."""
        limit = self.limit if one is None or one.limit is None else one.limit
        return None if limit == "none" else limit


class DocumentsPart(_Part, frozen=True):
    """``count`` auction documents of 10 to 40 KB, published at a ``rate`` per second. ``warm``: so many others are
    published before, one when the one before is everywhere; they are judged, but their times do not count.

    The rate "full": as fast as the network takes them, for so many ``seconds``. The next one is published as soon
    as every host lacks fewer than ``ahead`` of those before it (100)."""

    count: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    rate: Annotated[float, msgspec.Meta(gt=0, le=10_000)] | Annotated[str, msgspec.Meta(pattern="^full$")] = 5.0
    seconds: Annotated[float, msgspec.Meta(gt=0, le=86_400)] | None = None
    ahead: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    warm: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0

    @property
    def per_s(self) -> float | None:
        """How many per second; None: as many as the network takes."""
        return self.rate if isinstance(self.rate, float) else None

    @property
    def known(self) -> int:
        """How many there are, as far as that is known before: none at full load."""
        return 0 if self.per_s is None else self.count or _DOCUMENTS

    @property
    def last_s(self) -> float:
        """When the last one is due, in seconds after the first; at full load: none is published later.

        >>> DocumentsPart(count=21, rate=4.0).last_s, DocumentsPart(rate="full", seconds=30.0).last_s
        (5.0, 30.0)
        """
        return self.seconds or 0.0 if self.per_s is None else (self.known - 1) / self.per_s


class SourcePart(_Part, frozen=True):
    """``feeds``: how many subscriptions the source may feed itself."""

    feeds: Annotated[int, msgspec.Meta(ge=0)] | None = None


class Replan(_Part, frozen=True):
    """A full plan, ``at`` seconds after the first document; ``latency``: whether LOGA then lowers the latency."""

    at: _Seconds
    latency: bool = True


class PlanPart(_Part, frozen=True):
    """A full plan once everybody has subscribed, before the first document; everybody is fed by it then."""

    latency: bool = True


_NAMED: Final = (
    "kill", "stop", "start", "freeze", "thaw", "cut", "heal", "subscribe", "unsubscribe", "join", "leave",
)  # fmt: skip


class Fault(_Part, frozen=True):
    """Something that goes wrong, or right again, ``at`` seconds after the first document; one of the rest is said.

    ``kill`` ends daemons at once, ``stop`` lets them end, ``start`` starts them again, ``freeze`` and ``thaw``
    halt them and let them go on. ``cut`` lets nothing pass between these hosts and all others, ``heal`` all again.
    ``loss`` and ``rtt_ms`` change all links. ``subscribe`` and ``unsubscribe``: so many, drawn by the seed.
    ``join``: so many new hosts, with a few subscriptions each; ``leave``: hosts leave the network for good. With
    ``largest-feeder`` as the name of a host that is meant which feeds most on other machines then, one that
    was not meant so before if there is another. ``seconds``: undo it so much later (kill: start again; freeze:
    thaw; cut: heal; loss, rtt_ms: as before).
    """

    at: _Seconds
    kill: _Names = []
    stop: _Names = []
    start: _Names = []
    freeze: _Names = []
    thaw: _Names = []
    cut: _Names = []
    heal: bool = False
    loss: _Share | None = None
    rtt_ms: _Milliseconds | None = None
    subscribe: Annotated[int, msgspec.Meta(ge=0)] = 0
    unsubscribe: Annotated[int, msgspec.Meta(ge=0)] = 0
    join: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    leave: _Names = []
    seconds: _Seconds = 0.0

    @property
    def kinds(self) -> list[str]:
        """What it does."""
        found = [name for name in _NAMED if getattr(self, name)]
        return found + [name for name in ("loss", "rtt_ms") if getattr(self, name) is not None]

    def __str__(self) -> str:
        """Say it.

        >>> str(Fault(at=3.0, kill=["h01"], seconds=2.0))
        'kill h01 for 2 s'
        """
        words = []
        for kind in self.kinds:
            value = getattr(self, kind)
            shown = "" if value is True else f" {', '.join(value)}" if isinstance(value, list) else f" {value:g}"
            words.append(f"{kind}{shown}")
        return ", ".join(words) + (f" for {self.seconds:g} s" if self.seconds else "")


class Expected(_Part, frozen=True):
    """What must hold besides exactness, which always must: limits of what is measured. ``failures_at_most``: of
    faults and plans that fail, which are violations else."""

    source_feeds_at_most: int | None = None
    source_share_at_most: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    failovers_at_least: int | None = None
    failovers_at_most: int | None = None
    gaps_at_most: int = 0
    failures_at_most: Annotated[int, msgspec.Meta(ge=0)] = 0
    delivery_s_at_most: float | None = None
    latency_s_at_most: float | None = None


class Scenario(_Part, frozen=True):
    """A whole scenario. ``settle_s``: how long everybody may take to be complete after the last document."""

    title: Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
    about: str = ""
    seed: int = 1
    settle_s: Annotated[float, msgspec.Meta(gt=0, le=86_400)] = 120.0
    source: SourcePart = SourcePart()
    hosts: HostsPart = HostsPart()
    links: LinksPart = LinksPart()
    subscriptions: SubscriptionsPart = SubscriptionsPart()
    documents: DocumentsPart = DocumentsPart()
    plan: PlanPart | None = None
    replans: list[Replan] = []
    faults: list[Fault] = []
    expect: Expected = Expected()

    @property
    def names(self) -> list[str]:
        """The names of the hosts that are there from the beginning."""
        return [f"h{i:02}" for i in range(self.hosts.count)]

    @property
    def joining(self) -> list[list[str]]:
        """The names of the hosts that each fault lets join, in the order of the file; the numbers go on.

        >>> faults = [Fault(at=1.0, join=2), Fault(at=2.0, heal=True), Fault(at=0.5, join=1)]
        >>> Scenario(title="x", faults=faults).joining
        [['h04', 'h05'], [], ['h06']]
        """
        found, at = [], self.hosts.count
        for fault in self.faults:
            found.append([f"h{i:02}" for i in range(at, at + fault.join)])
            at += fault.join
        return found

    @property
    def everybody(self) -> list[str]:
        """The names of all hosts that there ever are."""
        return self.names + [name for names in self.joining for name in names]


LARGEST: Final = "largest-feeder"


def read_scenario(path: Path, changes: Sequence[str] = ()) -> Scenario:
    """Read a file and check it; ``BadScenario`` says what is wrong. ``changes``: see ``parse_scenario``."""
    try:
        return parse_scenario(path.read_text(encoding="utf-8"), path.name, changes)
    except (OSError, UnicodeDecodeError) as exc:
        raise BadScenario(f"{path}: {exc.strerror if isinstance(exc, OSError) else 'not UTF-8'}") from None


def parse_scenario(text: str, where: str, changes: Sequence[str] = ()) -> Scenario:
    """Read the text of a file. ``changes``: keys that are to have other values, ``KEY=VALUE`` each.

    >>> parse_scenario("title = 'x'\\n[hosts]\\ncount = 0", "x.toml")
    Traceback (most recent call last):
    scenarios.scenario_file.BadScenario: x.toml: Expected `int` >= 1 - at `$.hosts.count`
    >>> text = "title = 'x'\\n[subscriptions]\\ncount = 9"
    >>> parse_scenario(text, "x.toml", ["subscriptions.limit=5", "hosts.relay=never"]).hosts.relay
    'never'
    """
    from scenarios.scenario_check import check

    try:
        told: dict[str, Any] = tomllib.loads(text)
        for change in changes:
            _change(told, change)
        found = msgspec.convert(told, Scenario)
        check(found)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError, BadScenario) as exc:
        raise BadScenario(f"{where}: {exc}") from None
    return found


def _change(told: dict[str, Any], change: str) -> None:
    """Give a key another value: as TOML writes it, or else a text."""
    key, equals, value = change.partition("=")
    *parts, last = key.strip().split(".")
    if not equals or not all((*parts, last)):
        raise BadScenario(f"{change!r}: expected KEY=VALUE, as in subscriptions.limit=5")
    for part in parts:
        told = told.setdefault(part, {})
        if not isinstance(told, dict):
            raise BadScenario(f"{change!r}: {part} is no table; lists are given whole, as in replans=[{{at=3.0}}]")
    try:
        told[last] = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        told[last] = value.strip()
