"""Running a daemon as a process: until a signal, with its control socket, and logs as lines of JSON."""

from __future__ import annotations

import json
import logging
import signal
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.identity import IdentityError
from peer.daemon.control import serve_control
from peer.errors import CommandError
from peer.http.access import token_in
from peer.http.limits import HttpLimits
from peer.storage.errors import StorageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from peer.daemon.control import Handler
    from peer.http.serving import Server


@dataclass(frozen=True, slots=True)
class Http:
    """An HTTP server beside the daemon: its port (0: any), and what it offers."""

    port: int
    make: Callable[[Any, Path, str, HttpLimits], Server]


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


def start(
    home: Path,
    level: str,
    make: Callable[[Path], Any],
    controls: Callable[[Any], dict[str, Handler]],
    ready: Callable[[Any], None],
    http: Http | None = None,
) -> None:
    """Make a daemon and run it until it is told to stop; ``CommandError`` if it cannot be made."""
    log_to_stderr(level)
    try:
        daemon = make(home)
    except (IdentityError, StorageError) as exc:
        raise CommandError(str(exc)) from None
    token = "" if http is None else token_in(home)
    try:
        trio.run(run_daemon, home, daemon.opened(), controls, ready, http, token)
    except ExceptionGroup as group:
        if group.split(OSError)[1] is None:  # a port that is taken, say
            raise CommandError(str(_first(group))) from group
        raise


async def run_daemon(
    home: Path,
    opened: AbstractAsyncContextManager[Any],
    controls: Callable[[Any], dict[str, Handler]],
    ready: Callable[[Any], None],
    http: Http | None = None,
    token: str = "",
) -> None:
    """Run until SIGTERM or SIGINT; ``ready`` hears when everything listens."""
    async with opened as daemon, trio.open_nursery() as nursery:
        await nursery.start(serve_control, home, controls(daemon))
        if http is not None:
            server = http.make(daemon, home, token, HttpLimits())
            daemon.http_port = await nursery.start(server.serve, http.port)
        ready(daemon)
        with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                break
        nursery.cancel_scope.cancel()


def _first(group: ExceptionGroup[Exception]) -> Exception:
    one = group.exceptions[0]
    return _first(one) if isinstance(one, ExceptionGroup) else one
