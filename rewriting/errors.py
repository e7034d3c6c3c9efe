"""What can go wrong in this package."""

from __future__ import annotations


class RewritingError(Exception):
    """Base of this package's errors."""


class NotCarriedError(RewritingError):
    """Something was asked of a node that did not travel with it: the rewriting and the data do not fit."""

    def __init__(self, what: str, pre: int) -> None:
        super().__init__(f"the {what} of node {pre} was not sent")
        self.what = what
        self.pre = pre


class UnreadableContentError(RewritingError):
    """A content that came with a node is no XML, so its value cannot be read from it."""

    def __init__(self, pre: int, reason: str) -> None:
        super().__init__(f"the content of node {pre} cannot be read: {reason}")
        self.pre = pre
        self.reason = reason


class WrongColumnsError(RewritingError):
    """Columns came over a link that do not hold what it must carry."""

    def __init__(self, view: str, reason: str) -> None:
        super().__init__(f"columns from the view {view}: {reason}")
        self.view = view
        self.reason = reason


class MissingViewError(RewritingError):
    """A rewriting was executed without the results of one of its views."""

    def __init__(self, view: str) -> None:
        super().__init__(f"no results given for the view {view}")
        self.view = view


class ColumnsTooLargeError(RewritingError):
    """Results take more bytes than anybody would read."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the results take {size:,} bytes; the most is {limit:,}")
        self.size = size
        self.limit = limit


class MalformedColumnsError(RewritingError):
    """Bytes that are not what ``encode`` writes, or more than the limits allow."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"columns: {reason}, at byte {position}")
        self.reason = reason
        self.position = position
