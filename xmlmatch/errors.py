"""What can go wrong in ``xmlmatch``; every message is one line that says what, where and what to do."""

from __future__ import annotations

__all__ = ["DocumentError", "MatchLimitError", "PatternError", "RowLimitError", "XmlMatchError"]


class XmlMatchError(Exception):
    """The base of every error this package raises on bad input or at a limit."""


class PatternError(XmlMatchError):
    """A pattern text that the language refuses.

    ``column`` counts from 1, ``found`` is what stands there, ``supported`` says what could.
    """

    def __init__(self, reason: str, *, text: str, column: int, found: str, supported: str) -> None:
        self.reason = reason
        self.text = text
        self.column = column
        self.found = found
        self.supported = supported
        super().__init__(f"column {column}: {reason}; found {found}; supported: {supported}")


class DocumentError(XmlMatchError):
    """A document that is not well formed, or that asks for what is never done (entities, huge depth)."""

    def __init__(self, reason: str, *, line: int | None = None, column: int | None = None) -> None:
        self.reason = reason
        self.line = line
        self.column = column
        where = "" if line is None else f"line {line}, column {column}: "
        super().__init__(f"{where}{reason}")


class RowLimitError(XmlMatchError):
    """More rows than the reader allowed; the rows before it were delivered."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(f"more than {limit:,} rows; raise the limit or return fewer independent branches")


class MatchLimitError(XmlMatchError):
    """The node sets of one document outgrew the matcher's memory limit; nothing was answered."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        super().__init__(
            f"the answers need more than {limit:,} node entries; raise max_entries or match fewer patterns at once"
        )
