"""Why an event does not match a subscription, predicate by predicate; told without any index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rewriting.filters import text_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rewriting.filters import Condition, Value


@dataclass(frozen=True, slots=True)
class Failure:
    """A predicate that an event does not satisfy."""

    attribute: str
    condition: Condition | None
    """None if the attribute need only be there."""
    value: str | None
    """What the event has, or None if it lacks the attribute."""

    def __str__(self) -> str:
        asked = f"{self.attribute} present" if self.condition is None else str(self.condition)
        return f"{asked}: {'missing' if self.value is None else f'is {self.value!r:.80}'}"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Per conjunction of a subscription, the predicates that fail; it matches if some conjunction has none."""

    conjunctions: tuple[tuple[Failure, ...], ...]

    @property
    def matches(self) -> bool:
        """Whether the event matches the subscription."""
        return any(not failures for failures in self.conjunctions)

    def __str__(self) -> str:
        if self.matches:
            return "matches"
        return "; or ".join(", ".join(map(str, failures)) for failures in self.conjunctions)


def failures(
    asked: Iterable[tuple[str, Condition | None]], event: Mapping[str, Value]
) -> tuple[Failure, ...]:  # fmt: skip
    """List what fails of one conjunction, by attribute."""
    found = []
    for name, condition in asked:
        if name not in event:
            found.append(Failure(name, condition, None))
        elif condition is not None and not condition.holds(event[name]):
            found.append(Failure(name, condition, text_of(event[name])))
    return tuple(sorted(found, key=str))
