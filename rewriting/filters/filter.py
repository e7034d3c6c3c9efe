"""Key-value subscriptions: conjunctions of conditions on the attributes of flat messages.

``topic = 'sport' and price < 50`` asks for the messages whose ``topic`` is ``sport`` and whose ``price`` is a
number below 50; a missing attribute satisfies nothing. Section 4.4 of the Delta paper rewrites such subscriptions
with the very same covers, and so do we: a message is an element with attributes, a filter a pattern over it, and
everything in ``rewriting`` applies. A filter returns what it asks about, what it selects besides, and the whole
message if it says so; so ``topic = 'sport'`` and ``location = 'England'`` together feed ``topic = 'sport' and
location = 'England'``, by joining on the message. Patterns know comparisons only: ``in`` and ``prefix`` are for
the content-driven network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rewriting.filters.condition import Condition, Test, can_hold
from rewriting.filters.errors import FilterError
from rewriting.filters.reading import NAME, FilterReader
from xmlmatch.pattern import Axis, Column, Pattern, PatternNode, Return, canonical
from xmlmatch.predicates import Predicate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rewriting.filters.values import Value

MESSAGE: Final = "message"
MAX_CHARS: Final = 10_000
MAX_CONDITIONS: Final = 64
NAME_RULE: Final = "use letters, digits, _ . and -, and not xmlns"


def is_name(text: str) -> bool:
    """Say whether a text can name an attribute; ``xmlns`` would declare a namespace instead."""
    return NAME.fullmatch(text) is not None and text != "xmlns"


@dataclass(frozen=True, slots=True)
class Filter:
    """A conjunction of conditions, sorted, each once; ``select`` names attributes that are returned besides.

    >>> wanted = Filter.parse("topic = 'sport' and price < 50")
    >>> wanted.matches({"topic": "sport", "price": "12.5"}), wanted.matches({"topic": "sport"})
    (True, False)
    >>> str(wanted.pattern())
    "/message[@price{val}<50]/@topic{val}[.='sport']"
    """

    conditions: tuple[Condition, ...]
    select: tuple[str, ...] = ()
    whole: bool = False
    """Whether the message itself is returned too."""

    def __post_init__(self) -> None:
        if not (self.conditions or self.select or self.whole):
            raise FilterError("a filter needs a condition, or something to return", 0)
        if len(self.conditions) > MAX_CONDITIONS:
            raise FilterError(f"more than {MAX_CONDITIONS} conditions", 0)
        for name in (*(c.attribute for c in self.conditions), *self.select):
            if not is_name(name):
                raise FilterError(f"{name!r} is no attribute name; {NAME_RULE}", 0)
        object.__setattr__(self, "conditions", tuple(sorted(set(self.conditions), key=str)))
        object.__setattr__(self, "select", tuple(sorted(set(self.select))))

    @classmethod
    def parse(cls, text: str, *, select: Iterable[str] = (), whole: bool = False) -> Filter:
        """Read conditions joined by ``and``; raise ``FilterError`` with the column and what was expected."""
        check_text(text, select)
        conditions = FilterReader(text).conjunction() if text.strip() else []
        return cls(tuple(conditions), tuple(select), whole)

    def __str__(self) -> str:
        """Write the conditions; what is returned is not part of it."""
        return " and ".join(map(str, self.conditions))

    @property
    def contradiction(self) -> str | None:
        """Name an attribute that no value can satisfy, or None."""
        for name, tests in self._by_attribute().items():
            if not can_hold(tests):
                return name
        return None

    def matches(self, message: Mapping[str, Value]) -> bool:
        """Say whether a message satisfies every condition."""
        return all(c.attribute in message and c.holds(message[c.attribute]) for c in self.conditions) and all(
            name in message for name in self.select
        )

    def pattern(self) -> Pattern:
        """Return the pattern over messages that means the same; ``FilterError`` if there is none."""
        nodes = [PatternNode(MESSAGE, Axis.CHILD, -1, (), (Return.CONT,) if self.whole else ())]
        asked = self._by_attribute()
        nodes += [
            PatternNode(f"@{name}", Axis.CHILD, 0, _comparisons(name, asked.get(name, ())), (Return.VAL,))
            for name in sorted({*asked, *self.select})
        ]
        selection = [Column(i, what) for i, node in enumerate(nodes) for what in node.returns]
        return canonical(nodes, selection)

    def _by_attribute(self) -> dict[str, list[Test]]:
        asked: dict[str, list[Test]] = {}
        for c in self.conditions:
            asked.setdefault(c.attribute, []).append(c.predicate)
        return asked


def check_text(text: str, select: Iterable[str]) -> None:
    """Refuse what is too long, and one string in place of a list of names."""
    if len(text) > MAX_CHARS:
        raise FilterError(f"longer than {MAX_CHARS:,} characters", MAX_CHARS)
    if isinstance(select, str):
        raise TypeError("select is a list of attribute names, not one string")


def _comparisons(name: str, tests: Iterable[Test]) -> tuple[Predicate, ...]:
    found = []
    for test in tests:
        if not isinstance(test, Predicate):
            raise FilterError(f"{Condition(name, test)} has no pattern: patterns know only = != < <= > >=", 0)
        found.append(test)
    return tuple(found)
