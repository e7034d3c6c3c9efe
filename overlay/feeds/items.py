"""Items: what a subscription has for a document, where it has anything.

A document without an item, up to the frontier, has no results. Intervals are (after, upto].
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class Kind(enum.Enum):
    """What an item says of its document: here are results; it could not be processed; nobody has it any more; the
    results are what matching it gives, and another subscription of this machine has it."""

    RESULTS = "results"
    ERROR = "error"
    GAP = "gap"
    REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class Item:
    """``data``: the encoded results, or the reason in UTF-8, or of a reference, which never leaves a machine, the
    subscription that has the document. A gap covers (``after``, ``number``]. ``name``: the document's.
    ``marks``: advice that came with a whole document."""

    number: int
    kind: Kind
    data: bytes = b""
    after: int = -1
    name: str = ""
    marks: bytes = field(default=b"", compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind is Kind.GAP and not 0 <= self.after < self.number:
            raise ValueError(f"the gap ({self.after}, {self.number}] is empty")

    @property
    def begin(self) -> int:
        """The last document before it."""
        return self.after if self.kind is Kind.GAP else self.number - 1
