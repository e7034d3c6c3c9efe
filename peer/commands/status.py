"""``distributary status``: how a daemon and its subscriptions stand."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from peer.home import add_home, ask_one, home_of
from peer.output import draw, emit

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
    print(f"its certificate ends on {told['certificate_ends']}; it renews itself ten days before")
    rates = told["per_second"]
    sent, received = rates.get("bytes_sent", 0.0), rates.get("bytes_received", 0.0)
    saved = f", {told['bytes_saved']:,} more had crossed before" if told.get("bytes_saved") else ""
    print(f"sent {told['bytes_sent']:,} bytes ({sent:,.0f}/s){saved}")
    print(f"received {told['bytes_received']:,} bytes ({received:,.0f}/s)")
    if told.get("http_port"):
        print(f"HTTP on 127.0.0.1:{told['http_port']}; the token for it is in http-token, in its folder")
    if told["role"] == "source":
        _show_source(told)
    else:
        _show_peer(told)
    for reason, count in told["refused"].items():
        print(f"refused {count:,} times: {reason}")


def _show_source(told: dict[str, Any]) -> None:
    rate = told["per_second"].get("entries", 0.0)
    print(f"{told['last']:,} entries in the log ({rate:,.1f}/s) of generation {told['generation']}")
    machines = sum(one["subscriptions"] > 0 for one in told["machines"])
    print(f"{told['subscriptions']:,} subscriptions on {machines:,} machines, epoch {told['epoch']}")
    pending = f"; {told['pending']:,} find no feed within the limits" if told["pending"] else ""
    matched = f"; {told['matched']:,} matched by machines that have whole documents" if told["matched"] else ""
    print(f"{told['feeds']:,} of them fed by the source{matched}{pending}")
    if told["last_plan"]:
        plan = told["last_plan"]
        print(
            f"last full plan: {_when(plan['at'])}, for {plan['subscriptions']:,} subscriptions, "
            f"{plan['source_feeds']:,} fed by the source"
        )
    if told["should_replan"]:
        print(f"a replan would help: {told['should_replan']}")
    for site in told["doubled"]:
        print(
            f"two machines use the name {site}, and take each other's place: stop one, and invite it under another"
        )
    if not told["machines"]:
        return
    print(_bars(told["levels"]))
    from rich import box
    from rich.table import Table

    table = Table(
        "machine", "connected", "subscribed", "matched there", "from the source", "feeds given", "fed by",
        box=box.SIMPLE,
    )  # fmt: skip
    for one in told["machines"]:
        fed_by = one["fed_by_machines"]
        some = ", ".join(fed_by[:4]) + (f" and {len(fed_by) - 4} more" if len(fed_by) > 4 else "")
        table.add_row(
            one["site"], _connected(one),
            f"{one['subscriptions']:,}", f"{one['matched']:,}", f"{one['from_source']:,}",
            f"{one['feeds_given']:,}", some,
        )  # fmt: skip
    draw(table)


def _connected(one: dict[str, Any]) -> str:
    if one["is_connected"]:
        return "yes"
    return one["departed"] or f"[red]no, since {_when(one['last_seen'])}[/red]"


def _bars(levels: dict[str, int]) -> str:
    """Draw how many subscriptions are at which level.

    >>> print(_bars({"1": 2, "2": 4}))
    level 1  ##########            2
    level 2  ####################  4
    """
    most = max(levels.values(), default=1)
    named = {"away" if level == "0" else f"level {level}": count for level, count in levels.items()}
    width = max(map(len, named), default=0)
    bars = {name: "#" * max(1, round(20 * count / most)) for name, count in named.items()}
    return "\n".join(f"{name:{width}}  {bars[name]:20}  {count:,}" for name, count in named.items())


def _when(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d %H:%M")


def _show_peer(told: dict[str, Any]) -> None:
    if told["trouble"]:
        print(told["trouble"] if told["is_revoked"] else f"it does not agree with the source: {told['trouble']}")
    away = "not known, for this machine is cut off" if told["is_revoked"] else "not known, for the source is away"
    lag = away if told["lag"] is None else f"{told['lag']:,} entries"
    print(f"{told['per_second'].get('results', 0.0):,.1f} results/s; behind the source: {lag}")
    for one in told["subscriptions"]:
        fed = f"fed by {', '.join(one['fed_by'])}" if one["is_live"] else "fed by nobody now"
        moved = f", {one['failovers']:,} failovers" if one["failovers"] else ""
        print(
            f"  {one['subscription']}  level {one['level']}, complete up to {one['committed']:,}, {fed}"
            f", feeds {one['feeds']:,}{moved}"
        )
    for one in told["spaces"]:
        lost = "; nobody knows this space: the source has lost it, or is away" if one["is_lost"] else ""
        print(f"  {one['subscription']}  in space {one['space']}, complete up to {one['complete']:,}{lost}")
    for one in told["webhooks"]:
        why = f" ({one['failures']:,} failures: {one['problem']})" if one["problem"] else ""
        print(f"  {one['webhook']}  posts {one['subscription']} to {one['url']}: {one['state']}{why}")
