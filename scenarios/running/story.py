"""What a run was, as it is noted down while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from scenarios.running.daemons import Counted
    from scenarios.running.truth import Owed, Published

FAILED: Final = "failed: "


class RunFailed(Exception):
    """The run could not be carried through; the message says what did not happen."""


@dataclass(frozen=True, slots=True)
class Happened:
    """Something that happened, when, and what came of it."""

    at: float
    what: str
    outcome: str = ""
    event: int = 0
    undoes: int | None = None
    """The number of its event, and of the one that it ended."""

    @property
    def has_failed(self) -> bool:
        """Whether it was to happen, and did not."""
        return self.outcome.startswith(FAILED)


@dataclass(frozen=True, slots=True)
class Left:
    """A host has left for good: ``after`` which document it was asked to, and when it had."""

    after: int
    at: float


@dataclass(slots=True)
class Story:
    """What a run was: everything needed to judge it and to tell of it."""

    began: float = 0.0
    """The clock's time of the first document."""
    documents: list[Published] = field(default_factory=list)
    owed: dict[str, Owed] = field(default_factory=dict)
    happened: list[Happened] = field(default_factory=list)
    standing: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How each subscription stood at the end."""
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """How each daemon stood at the end."""
    counted: dict[str, Counted] = field(default_factory=dict)
    """What each host has counted, over all its starts."""
    left: dict[str, Left] = field(default_factory=dict)
    """The hosts that have left."""
    plans: list[dict[str, Any]] = field(default_factory=list)
    packets: dict[str, int] = field(default_factory=dict)
    is_complete: bool = False
    fallen: list[str] = field(default_factory=list)
    """Daemons that have ended by themselves, which none may."""
    broke_off: str = ""
    """Why the run was not carried through."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How long each phase took."""
    published_s: float = 0.0
    """How long documents were published, those before the first aside."""
    held_back_s: float = 0.0
    """How much of that they waited for room, at full load."""
