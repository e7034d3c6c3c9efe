"""Coroutines of the daemons in virtual time: they run until they await what has not happened yet.

What they may await is a ``Promise``, a ``Turn``, or each other; whatever of trio a daemon awaits, its parts are
given one of these instead. Nothing here has a clock: promises are kept by what the agenda lets happen.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

Value = TypeVar("Value")
_NOTHING: Final = object()


_DUE: Final[deque[Callable[[], None]]] = deque()
"""Whoever is to be woken, the first just now."""


class Promise(Generic[Value]):
    """A value, or an error, that is not there yet."""

    def __init__(self) -> None:
        self._value: Any = _NOTHING
        self._error: Exception | None = None
        self._waiting: list[Callable[[], None]] = []

    def keep(self, value: Value) -> None:
        """Here it is."""
        self._value = value
        self._wake()

    def fail(self, error: Exception) -> None:
        """There will be none."""
        self._error = error
        self._wake()

    def _wake(self) -> None:
        """Wake whoever waits: one after the other, not one within the other, however many wait for each other."""
        is_first = not _DUE
        _DUE.extend(self._waiting)
        self._waiting = []
        while is_first and _DUE:
            try:
                _DUE[0]()
            except BaseException:
                _DUE.clear()
                raise
            _DUE.popleft()

    def then(self, wake: Callable[[], None]) -> None:
        """Hear of it once it is there."""
        self._waiting.append(wake)

    def __await__(self) -> Generator[Promise[Any], None, Value]:
        if self._value is _NOTHING and self._error is None:
            yield self
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]  # it is what was promised


class Turn:
    """A lock, first come first served: ``async with``."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: list[Promise[None]] = []

    async def __aenter__(self) -> None:
        if self._is_taken:
            mine: Promise[None] = Promise()
            self._waiting.append(mine)
            await mine
        self._is_taken = True

    async def __aexit__(self, *_: object) -> None:
        if self._waiting:
            self._waiting.pop(0).keep(None)
        else:
            self._is_taken = False


async def at_once(function: Callable[..., Value], *arguments: Any) -> Value:
    """Do in no time what a daemon does in a thread."""
    return function(*arguments)


class Tasks:
    """The coroutines of a machine's process; they end with it, wherever they are."""

    def __init__(self) -> None:
        self._running: dict[int, Coroutine[Promise[Any], None, Any]] = {}
        self._next = 0

    def start(self, coroutine: Coroutine[Any, None, Any]) -> None:
        """Run a coroutine as far as it comes, and on when what it waits for is there."""
        self._next += 1
        self._running[self._next] = coroutine
        self._step(self._next)

    def end(self) -> None:
        """The process has ended: nothing of it goes on."""
        self._running.clear()

    def _step(self, number: int) -> None:
        coroutine = self._running.get(number)
        if coroutine is None:
            return
        try:
            awaited = coroutine.send(None)
        except StopIteration:
            self._running.pop(number, None)
            return
        except BaseException:
            self._running.pop(number, None)
            raise
        awaited.then(lambda: self._step(number))
