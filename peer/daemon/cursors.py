"""Named cursors: where a reader of a subscription is, through restarts of everybody.

A cursor says: everything up to this document is done. It moves when the reader says so, which is after it has
written what it read; so a reader that was cut off gets some of it again, never less. While a cursor is behind,
what it has yet to read is kept beyond the usual limits (``ResultLimits``).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from peer.daemon.questions import NoAnswer, Unreachable
from peer.storage.errors import LocalMisuse, StorageError
from peer.storage.result_values import Cursor, DropCursor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peer.daemon.one_writer import OneWriter
    from peer.daemon.reading import Reach

MOST_CURSORS: Final = 100
"""Per subscription: one that is forgotten keeps results from being dropped."""
RESERVED: Final = "webhook:"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def check_cursor(name: str) -> str:
    """Return a name that a user may give a cursor, or refuse it.

    >>> check_cursor("billing.v2")
    'billing.v2'
    """
    if name.startswith(RESERVED):
        raise NoAnswer(f"cursor {name[:100]} is a webhook's; 'distributary webhook remove' ends it")
    if not _NAME.fullmatch(name):
        raise NoAnswer(
            f"cursor {name[:100]!r}: a name has up to 100 letters, digits, '.', '-' or '_', and begins with a "
            f"letter or digit"
        )
    return name


class CursorStore(Protocol):
    """What keeps cursors, with what they read."""

    def cursors(self, subscription: str) -> dict[str, int]:
        """Return the cursors of a subscription, and where they are."""

    def commit(self, changes: Sequence[Cursor | DropCursor], /) -> object:
        """Move or forget cursors; ``LocalMisuse`` where that cannot be."""


class Readable(Protocol):
    """What is read with cursors."""

    def reach(self, name: str) -> Reach:
        """Say how far a subscription goes; ``NoAnswer`` if there is none."""

    def names(self) -> list[str]:
        """List the subscriptions."""


class Cursors:
    """The cursors of a peer's subscriptions. Each move is a transaction of its own: what a reader gets wrong is
    refused to it, and harms no results."""

    def __init__(self, store: CursorStore, reading: Readable, alone: OneWriter) -> None:
        self._store, self._reading, self._alone = store, reading, alone

    async def begin(self, subscription: str, name: str, since: int) -> int:
        """Return where a cursor is; a new one begins at ``since``, or where the subscription does."""
        reach = self._reading.reach(subscription)
        known = await trio.to_thread.run_sync(self._store.cursors, subscription)
        if name in known:
            return known[name]
        if len(known) >= MOST_CURSORS:
            raise NoAnswer(f"{subscription} has {MOST_CURSORS} cursors, the most; remove one first")
        at = min(max(since, reach.start), reach.upto)
        await self._commit(Cursor(subscription, name, at))
        return at

    async def move(self, subscription: str, name: str, upto: int) -> None:
        """Everything up to a document is done; a cursor never goes back."""
        self._reading.reach(subscription)
        if name not in await trio.to_thread.run_sync(self._store.cursors, subscription):
            raise NoAnswer(f"there is no cursor {name[:100]} of {subscription}; read with it first")
        await self._commit(Cursor(subscription, name, upto))

    async def remove(self, subscription: str, name: str) -> None:
        """Forget a cursor; nothing is kept for it any more."""
        self._reading.reach(subscription)
        if name not in await trio.to_thread.run_sync(self._store.cursors, subscription):
            raise NoAnswer(f"there is no cursor {name[:100]} of {subscription}; 'cursors list' lists them")
        await self._commit(DropCursor(subscription, name))

    async def listed(self, subscription: str | None = None) -> list[dict[str, Any]]:
        """List the cursors of a subscription, or of all, and how far behind what is there each is."""
        if subscription is not None:
            self._reading.reach(subscription)
        return await trio.to_thread.run_sync(self._rows, subscription)

    def _rows(self, subscription: str | None) -> list[dict[str, Any]]:
        return [
            {"subscription": one, "cursor": name, "upto": upto, "behind": self._reading.reach(one).upto - upto}
            for one in ([subscription] if subscription is not None else self._reading.names())
            for name, upto in self._store.cursors(one).items()
        ]

    async def _commit(self, change: Cursor | DropCursor) -> None:
        try:
            await trio.to_thread.run_sync(self._alone, self._store.commit, [change])
        except LocalMisuse as exc:
            raise NoAnswer(str(exc)) from None
        except StorageError as exc:  # a full disk, say: the cursor is where it was
            raise Unreachable(str(exc)) from None
