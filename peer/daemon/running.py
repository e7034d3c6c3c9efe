"""Running a daemon as a process: until a signal, with its control socket, and logs as lines of JSON.

The first SIGTERM or SIGINT stops it in order, a second one at once. A service manager hears of both ends.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from overlay.identity import IdentityError
from peer.daemon.control import SOCKET, serve_control
from peer.daemon.notify import Notifier
from peer.daemon.one_daemon import only_one
from peer.errors import CommandError
from peer.giving_back import settle
from peer.http.access import token_in
from peer.http.limits import HttpLimits
from peer.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from peer.daemon.control import Handler
    from peer.http.serving import Server


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP server beside the daemon: its port (0: any), and what it offers."""

    port: int
    make: Callable[[Any, Path, str, HttpLimits], Server]


_LOG: Final = logging.getLogger("distributary.service")
_ANSWER_S: Final = 0.5
"""How long a daemon that has nothing to do any more waits: whoever asked for that is told first."""
_PLAIN: Final = set(vars(logging.makeLogRecord({}))) | {"message"}


class _JsonLines(logging.Formatter):
    """An event per line: time, level, logger, event, and its fields."""

    def format(self, record: logging.LogRecord) -> str:
        fields = {name: value for name, value in vars(record).items() if name not in _PLAIN}
        told = {"at": round(record.created, 3), "level": record.levelname.lower(), "logger": record.name}
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return json.dumps(told | {"event": record.getMessage()} | fields, default=str)


def log_to_stderr(level: str) -> None:
    """Write structured logs to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class Service(Protocol):
    """What runs as a process. ``http_port``: where it serves HTTP, if it does. ``finished``: it wants to stop."""

    http_port: int
    finished: trio.Event

    def opened(self) -> AbstractAsyncContextManager[Any]:
        """Run while the block runs."""

    async def leave(self) -> None:
        """Stop in order; bounded in time."""


def start(
    home: Path,
    level: str,
    make: Callable[[Path], Service],
    controls: Callable[[Any], dict[str, Handler]],
    ready: Callable[[Any], None],
    http: Http | None = None,
    socket: str = SOCKET,
) -> None:
    """Make a daemon and run it until it is told to stop; ``CommandError`` if it cannot be made, or not listen."""
    log_to_stderr(level)
    token = "" if http is None else token_in(home)
    try:
        with only_one(home, socket):
            daemon = make(home)
            settle()
            trio.run(run_daemon, home, daemon, controls, ready, http, token, socket)
    except (IdentityError, StorageError) as exc:
        raise CommandError(str(exc)) from None
    except BaseExceptionGroup as group:
        only = _only(group)
        if isinstance(only, (OSError, CommandError)):  # a port that is taken, say
            raise CommandError(str(only)) from group
        raise


def _only(exc: BaseException) -> BaseException:
    """Return the one error that nurseries have wrapped; the group itself if there are several."""
    while isinstance(exc, BaseExceptionGroup) and len(exc.exceptions) == 1:
        exc = exc.exceptions[0]
    return exc


async def run_daemon(
    home: Path,
    daemon: Service,
    controls: Callable[[Any], dict[str, Handler]],
    ready: Callable[[Any], None],
    http: Http | None = None,
    token: str = "",
    socket: str = SOCKET,
) -> None:
    """Run until SIGTERM or SIGINT, then stop in order; ``ready`` hears when everything listens."""
    notifier = Notifier()
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with trio.open_nursery() as outer:
            async with daemon.opened(), trio.open_nursery() as nursery:
                await nursery.start(serve_control, home, controls(daemon), socket)
                if http is not None:
                    server = http.make(daemon, home, token, HttpLimits())
                    daemon.http_port = await nursery.start(server.serve, http.port)
                ready(daemon)
                notifier.say("READY=1", f"MAINPID={os.getpid()}")
                _LOG.info("ready", extra={"home": str(home), "pid": os.getpid()})
                nursery.start_soon(notifier.keep_alive)
                name = await _reason_to_stop(daemon, signals)
                outer.start_soon(_end_at_once, signals)
                notifier.say("STOPPING=1")
                _LOG.info("stopping", extra={"reason": name})
                await daemon.leave()
                nursery.cancel_scope.cancel()
            outer.cancel_scope.cancel()
    _LOG.info("stopped")


async def _reason_to_stop(daemon: Service, signals: AsyncIterator[int]) -> str:
    """Wait for a signal, or until the daemon has nothing to do any more; return which."""
    reason = "finished"

    async def wait(scope: trio.CancelScope) -> None:
        nonlocal reason
        reason = signal.Signals(await anext(signals)).name
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait, nursery.cancel_scope)
        await daemon.finished.wait()
        await trio.sleep(_ANSWER_S)
        nursery.cancel_scope.cancel()
    return reason


async def _end_at_once(signals: AsyncIterator[int]) -> None:
    """Do not wait any longer when a second signal comes: what is on disk is whole at any time."""
    number = await anext(signals)
    _LOG.warning("ended at once", extra={"signal": signal.Signals(number).name})
    os._exit(128 + number)
