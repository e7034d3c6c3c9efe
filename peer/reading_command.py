"""What ``results``, ``tail`` and ``messages`` share: printing entries, and moving a cursor behind them."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from peer.arguments import check_number
from peer.home import HasLeft, add_home, ask, ask_one, home_of
from peer.output import emit
from peer.progress import Progress
from peer.reading_left import print_stored

if TYPE_CHECKING:
    import argparse
    from pathlib import Path


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("subscription", help="its name")
    parser.add_argument("--since", type=int, default=0, metavar="N", help="only what comes after number N")
    parser.add_argument(
        "--cursor",
        metavar="NAME",
        help="go on where the last reader of this name was (a new one begins after --since), and remember",
    )
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print JSON lines, which it does anyway")


def print_entries(arguments: argparse.Namespace, *, follow: bool) -> None:
    """Print entries. The cursor moves after what it passes was written to standard output and flushed."""
    home, name = home_of(arguments), arguments.subscription
    since = check_number("--since", arguments.since)
    asked: dict[str, Any] = {"subscription": name, "since": since, "follow": follow}
    if arguments.cursor is not None:
        asked["cursor"] = arguments.cursor
    try:
        _print_told(home, asked, arguments.cursor)
    except HasLeft:
        if follow or arguments.cursor is not None:
            raise
        print_stored(home, name, since)


def _print_told(home: Path, asked: dict[str, Any], cursor: str | None) -> None:
    progress = Progress()
    for one in ask(home, "entries", **asked):
        emit(one)
        progress.told(one)
        upto = None if cursor is None else progress.due(time.monotonic(), one)
        if asked["follow"] or upto is not None:
            sys.stdout.flush()
        if upto is not None:
            ask_one(home, "move_cursor", subscription=asked["subscription"], cursor=cursor, upto=upto)
