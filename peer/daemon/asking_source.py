"""Asking the source on behalf of a user: patiently while it is away, and at once where that is of no use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

from peer.daemon.questions import PATIENCE_S, NotConnected, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

    from peer.daemon.membership import Membership
    from peer.daemon.questions import Questions

_TRIES: Final = 3
_CONNECT_S: Final = 10.0
_LOOK_S: Final = 0.25
_BACK: Final = "when the source is back ('distributary status' says whether it is connected)"


class AskingSource:
    """The way to the source; ``connected`` returns the event that is set while it is there."""

    def __init__(
        self, source: str, questions: Questions, membership: Membership, connected: Callable[[], trio.Event]
    ) -> None:
        self._source, self._questions, self._membership = source, questions, membership
        self._connected = connected

    async def ask(self, what: str, body: Any, *, patience_s: float = PATIENCE_S) -> Any:
        """Ask, again if the connection breaks: everything asked so can be asked twice. ``NoAnswer`` if it
        refuses, or if this machine is revoked; ``Unreachable`` says whether anything can have been changed."""
        failures = []
        for _ in range(_TRIES):
            await self._reach()
            try:
                return await self._questions.ask(self._source, what, body, patience_s=patience_s)
            except Unreachable as exc:
                failures.append(exc)
        if all(isinstance(exc, NotConnected) for exc in failures):
            raise NotConnected(f"{failures[-1]}: nothing was changed; try again {_BACK}")
        raise Unreachable(f"{failures[-1]}: it may have been done all the same; look, and try again {_BACK}")

    async def _reach(self) -> None:
        """Wait for the source, for a while."""
        with trio.move_on_after(_CONNECT_S):
            while not self._connected().is_set():
                self._membership.check_not_revoked()
                with trio.move_on_after(_LOOK_S):
                    await self._connected().wait()
