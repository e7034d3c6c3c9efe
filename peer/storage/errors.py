"""What can go wrong with a store; every message is one line, fit to be shown to a user as it is.

Our own fault: ``LocalMisuse`` and ``LocalFrontierWentBack``. Another machine's: ``RemoteStaleGeneration``. The
world's: ``DiskFull``, ``BrokenStore``, ``NewerStore``. What nobody thought of: ``Unstorable``. Whichever is
raised, the transaction left nothing behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class StorageError(Exception):
    """Base of this package's errors."""


class LocalMisuse(StorageError):
    """A call that the store's contract rules out."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class LocalFrontierWentBack(LocalMisuse):
    """Results that end before what is already complete."""

    def __init__(self, subscription: str, stored: int, given: int) -> None:
        super().__init__(f"subscription {subscription} is complete up to {stored}; it cannot go back to {given}")
        self.subscription = subscription
        self.stored = stored
        self.given = given


class Unstorable(StorageError):
    """Something that cannot be written, for a reason that nobody thought of: the cause."""

    def __init__(self, path: Path, cause: Exception) -> None:
        super().__init__(f"{path}: this cannot be stored: {type(cause).__name__}: {cause}")
        self.path = path


class RemoteStaleGeneration(StorageError):
    """Results numbered by a log that was since replaced by a restored one."""

    def __init__(self, subscription: str, stored: int, given: int) -> None:
        super().__init__(f"subscription {subscription} follows generation {stored} of the log, not {given}")
        self.subscription = subscription
        self.stored = stored
        self.given = given


class DiskFull(StorageError):
    """There is no room left to write; what was stored before stays readable."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: the disk is full; make room or lower the retention limits")
        self.path = path


class BrokenStore(StorageError):
    """A file that cannot be used as the store it should be."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


class NewerStore(StorageError):
    """A file in a format that only a newer program knows."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(
            f"{path}: its format is {found}, this program knows up to {known}; run the newer program that wrote it"
        )
        self.path = path
        self.found = found
        self.known = known
