"""Up to where a reader with a cursor is done.

>>> progress = Progress()
>>> for told in ({"document": 7, "row": {}}, {"document": 9, "row": {}}):
...     progress.told(told)
>>> progress.due(now=1.0, told=told)
8
>>> progress.told({"complete": 12})
>>> progress.due(now=1.1, told={"complete": 12})
12
>>> progress.told({"message": 15, "attributes": {}})
>>> progress.upto
15
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_PAUSE_S: Final = 1.0
"""Moving a cursor is a write to disk: while there is always more to read, once in so long."""


@dataclass(slots=True)
class Progress:
    """What was told and is done with; of a document with rows it is not known until the next entry whether it is
    whole."""

    upto: int = -1
    _moved: int = -1
    _at: float = float("-inf")

    def told(self, entry: Mapping[str, Any]) -> None:
        """An entry is done with."""
        if "row" in entry:
            upto = entry["document"] - 1
        elif "message" in entry:
            upto = entry["message"]
        elif "gap" in entry:
            upto = entry["gap"][1]
        else:
            upto = entry["document"] if "document" in entry else entry["complete"]
        self.upto = max(self.upto, upto)

    def due(self, now: float, told: Mapping[str, Any]) -> int | None:
        """Return to where the cursor is to be moved now, None if it can wait; ``told``: the last entry."""
        if self.upto <= self._moved or ("complete" not in told and now < self._at + _PAUSE_S):
            return None
        self._moved, self._at = self.upto, now
        return self.upto
