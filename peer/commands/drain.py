"""``distributary drain``: before maintenance, let others feed those whom this machine feeds."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Final

from peer.errors import CommandError
from peer.home import add_home, ask, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Before maintenance: let others feed those whom this machine feeds, without a pause."
_EPILOG: Final = """\
When it ends, nobody is fed by this machine, and it can be stopped without anybody noticing. Its own subscriptions
go on. It feeds again when its daemon is started anew, or with --undo.

examples:
  distributary drain && systemctl stop distributary-peer
  distributary drain --wait 30
  distributary drain --undo
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_home(parser)
    parser.add_argument("--wait", type=float, default=120.0, metavar="S", help="give up after S seconds (120)")
    parser.add_argument("--undo", action="store_true", help="let this machine feed others again")
    parser.add_argument("--json", action="store_true", help="print a JSON object at the end")


def run(arguments: argparse.Namespace) -> int:
    """Drain, or undo it."""
    home = home_of(arguments)
    if arguments.undo:
        told = ask_one(home, "end_drain")
        _say(arguments, told | {"is_drained": False}, "This machine may feed others again.")
        return 0
    left = _wait(arguments, time.monotonic() + arguments.wait)
    if left:
        raise CommandError(
            f"{left:,} feeds are still there after {arguments.wait:g} s; others may have no room for them: "
            "wait longer, or stop the daemon all the same (they fall back by themselves)"
        )
    _say(arguments, {"feeds": 0, "is_drained": True}, "Nobody is fed by this machine; it can be stopped.")
    return 0


def _wait(arguments: argparse.Namespace, end: float) -> int:
    """Follow until nobody is left, or until the end of patience; return how many are left."""
    shown, left = -1, 0
    for told in ask(home_of(arguments), "drain"):
        left = int(told["feeds"])
        if left != shown and sys.stderr.isatty():
            print(f"\r{left:,} feeds left ", end="\n" if left == 0 else "", file=sys.stderr, flush=True)
            shown = left
        if time.monotonic() > end:
            break
    return left


def _say(arguments: argparse.Namespace, told: dict[str, object], text: str) -> None:
    if arguments.json:
        emit(told)
    else:
        print(text)
