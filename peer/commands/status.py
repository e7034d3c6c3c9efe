"""``distributary status``: how a daemon and its subscriptions stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.home import add_home, ask_one, home_of
from peer.output import emit

if TYPE_CHECKING:
    import argparse

SUMMARY: Final = "Show how the daemon stands: connections, levels, lag, rates, failovers."
_EPILOG: Final = """\
examples:
  distributary status
  distributary status --json | jq .connected
"""


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = _EPILOG
    add_home(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(arguments: argparse.Namespace) -> int:
    """Show."""
    told = ask_one(home_of(arguments), "status")
    if arguments.json:
        emit(told)
    else:
        _show(told)
    return 0


def _show(told: dict[str, Any]) -> None:
    connected = ", ".join(told["connected"]) or "nobody"
    print(f"{told['site']} ({told['role']}), port {told['port']}; connected: {connected}")
    print(f"sent {told['bytes_sent']:,} bytes, received {told['bytes_received']:,}")
    if told["role"] == "source":
        print(f"{told['last']:,} entries in the log, epoch {told['epoch']}")
        print(f"{told['subscriptions']:,} subscriptions on {len(told['sites']):,} machines")
        print(f"{told['feeds']:,} of them fed by the source")
    for one in told["subscriptions"] if told["role"] == "peer" else []:
        fed = ", ".join(one["fed_by"]) if one["is_live"] else "waiting"
        print(f"  {one['subscription']}  level {one['level']}, complete up to {one['committed']:,}, fed by {fed}")
    for reason, count in told["refused"].items():
        print(f"refused {count:,} times: {reason}")
