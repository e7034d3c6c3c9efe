"""The folder a daemon lives in, and the commands' way to the daemon."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError, TryAgain

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


class NoDaemon(TryAgain):
    """There is no daemon in a folder."""


class HasLeft(CommandError):
    """There is no daemon in a folder, for its machine has left the network."""


VARIABLE: Final = "DISTRIBUTARY_HOME"
_SOCKET: Final = "control.sock"
_ASK_SOURCE: Final = frozenset({
    "subscribe", "unsubscribe", "publish", "trace", "drain", "end_drain", "leave_network", "plan_state",
    "snapshot", "space_subscribe", "space_publish",
})  # fmt: skip
"""What a peer asks the source in turn, and waits for while that is away."""
_SILENT_S: Final = 1.5
_WAITING: Final = "distributary: waiting for the source, up to 30 s\n"


def add_home(parser: argparse.ArgumentParser) -> None:
    """Declare ``--home``."""
    parser.add_argument(
        "--home", metavar="DIR", help=f"the daemon's folder (default: ${VARIABLE}, or ~/.distributary)"
    )


def home_of(arguments: argparse.Namespace) -> Path:
    """Return the folder to use."""
    given = arguments.home or os.environ.get(VARIABLE)
    return Path(given).expanduser() if given else Path.home() / ".distributary"


class Conversation:
    """A connection to the daemon of a folder, for any number of requests; a context manager. Once it has raised
    ``TryAgain``, or answers were left unread, a new one is needed. ``is_quiet``: waiting is not told.
    ``patience_s``: how long the daemon may be silent while it is asked something (for ever)."""

    def __init__(
        self, home: Path, socket_name: str = _SOCKET, *, is_quiet: bool = False, patience_s: float | None = None
    ) -> None:
        self._may_tell = not is_quiet and not (home / "authority").exists()
        self._home, self._patience_s = home, patience_s
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.settimeout(patience_s)
        try:
            self._connection.connect(str(home / socket_name))
        except (TimeoutError, BlockingIOError):
            self._connection.close()
            raise self._silence() from None
        except (FileNotFoundError, ConnectionRefusedError):
            self._connection.close()
            _check_not_left(home)
            raise NoDaemon(no_daemon(home)) from None
        self._answers = self._connection.makefile("rb")
        self._is_over = False

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End it."""
        self._answers.close()
        self._connection.close()

    def ask(self, do: str, /, **fields: Any) -> Iterator[dict[str, Any]]:
        """Ask something, and yield the answers; ``CommandError`` if the daemon refuses or is gone."""
        if self._is_over:
            raise TryAgain("this conversation with the daemon is over; begin another")
        self._is_over = True  # until all answers were read
        try:
            yield from self._answers_to(do, fields)
        except TimeoutError:
            raise self._silence() from None

    def _silence(self) -> TryAgain:
        return TryAgain(f"the daemon in {self._home} has not answered for {self._patience_s:g} s")

    def _answers_to(self, do: str, fields: dict[str, Any]) -> Iterator[dict[str, Any]]:
        with contextlib.suppress(ConnectionError):
            self._connection.sendall(json.dumps({"do": do, **fields}).encode() + b"\n")
            if do in _ASK_SOURCE:
                self._tell_of_waiting()
            for line in self._answers:
                told = json.loads(line)
                self._is_over = not ("failed" in told or told.get("done") is True)
                if "failed" in told:
                    raise (TryAgain if told.get("again") else CommandError)(told["failed"])
                if not self._is_over:
                    return
                yield told
        raise TryAgain("the daemon has gone while it was answering; its log says why")

    def _tell_of_waiting(self) -> None:
        """Say on standard error, once, that nothing comes because the source is waited for."""
        if self._may_tell and not select.select([self._connection], [], [], _SILENT_S)[0]:
            self._may_tell = False
            sys.stderr.write(_WAITING)
            sys.stderr.flush()

    def one(self, do: str, /, **fields: Any) -> dict[str, Any]:
        """Ask something that has one answer."""
        return next(iter(list(self.ask(do, **fields))))


def no_daemon(home: Path) -> str:
    """Say that no daemon runs in a folder, and what would help there."""
    if (home / "authority").exists() or (home / "identity").exists():
        daemon = "source" if (home / "authority").exists() else "peer"
        start = f"or it is still starting; start one with 'distributary {daemon} run --home {home}'"
        return f"no daemon runs in {home}, {start}, or name another folder with --home"
    make = "make a network ('distributary network init NAME') or join one ('distributary network join TOKEN')"
    return f"no daemon runs in {home}, and no machine's files are there; name its folder with --home, or {make}"


def _check_not_left(home: Path) -> None:
    if not (home / "left.json").exists():
        return
    from overlay.identity import IdentityError
    from peer.daemon.resigning import check_not_left

    try:
        check_not_left(home)
    except IdentityError as exc:
        reading = f"'distributary results SUBSCRIPTION --home {home}' prints what it received before"
        raise HasLeft(f"{exc}; {reading}") from None


def ask(
    home: Path, do: str, /, socket_name: str = _SOCKET, *, patience_s: float | None = None, **fields: Any
) -> Iterator[dict[str, Any]]:
    """Ask the daemon of a folder something, and yield its answers; ``CommandError`` if it refuses or is gone."""
    with Conversation(home, socket_name, patience_s=patience_s) as conversation:
        yield from conversation.ask(do, **fields)


def answers(home: Path, socket_name: str = _SOCKET) -> bool:
    """Say whether a daemon listens there: one that was killed leaves its socket behind."""
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(home / socket_name))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
    return True


def ask_one(home: Path, do: str, /, **fields: Any) -> dict[str, Any]:
    """Ask something that has one answer."""
    with Conversation(home) as conversation:
        return conversation.one(do, **fields)
