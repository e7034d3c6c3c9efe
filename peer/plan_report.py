"""What a written plan says of one subscription: how it is fed and why, and what it falls back to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.output import visible

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PLAN: Final = "plan.parquet"
_HOW: Final = {
    "source": "by the source: nobody else can, or it would cost more, or their feeds are used up",
    "copy": "by an equal subscription, which sends on what it gets",
    "local": "by an equal subscription on its own machine, for nothing",
    "pending": "not at all: there was no capacity left for it",
}
_PLANS: Final = {
    "filter": "each input filters what it sends, and the results are joined here",
    "reduce": "some inputs also reduce the part they send, and the results are joined here",
    "join": "the inputs are joined at {site}, which sends the finished result",
}


def read_row(folder: Path, subscription: str) -> dict[str, Any]:
    """Return the row of a subscription in a written plan."""
    try:
        import pyarrow.compute as pc
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise CommandError("pyarrow is not installed; get it with: pip install 'distributary[planner]'") from None
    path = folder / _PLAN
    if not path.exists():
        raise CommandError(f"{folder}: there is no {_PLAN} in it; 'distributary plan' makes one")
    found = pyarrow.parquet.read_table(path, filters=pc.field("subscription") == subscription).to_pylist()
    if not found:
        raise CommandError(f"{path}: there is no subscription {subscription}")
    row: dict[str, Any] = found[0]
    return row


def told(row: dict[str, Any]) -> Iterator[str]:
    """Say in lines what a row of a plan means."""
    limit = "no limit" if row["limit"] is None else f"a plan limit of {row['limit']:,} feeds"
    yield f"{row['subscription']} at {row['site']} wants {visible(row['pattern'])} and has {limit}"
    yield f"level {row['level']}, expected latency {1000 * row['latency_s']:.1f} ms"
    if row["how"] == "rewriting":
        others = len(row["inputs"])
        yield f"fed by {others} other{'s' if others > 1 else ''}, at a utilization of {row['utilization']:,}:"
        where = row["inputs"][row["join_at"]]["site"] if row["plan"] == "join" else ""
        for one in row["inputs"]:
            yield f"  {one['subscription']} at {one['site']}: {_columns(one['columns'])}"
        yield f"  {_PLANS[row['plan']].format(site=where)}"
    else:
        from_ = "".join(f" ({one['subscription']} at {one['site']})" for one in row["inputs"])
        yield f"fed {_HOW[row['how']]}{from_}, at a utilization of {row['utilization']:,}"
    for i, other in enumerate(row["alternatives"], start=1):
        named = ", ".join(f"{s} at {site}" for s, site in zip(other["subscriptions"], other["sites"], strict=True))
        more = other["utilization"] - row["utilization"]
        yield f"alternative {i}: {named}; utilization {other['utilization']:,} ({more:+,})"
    yield "last resort: the source"


def _columns(columns: list[dict[str, Any]]) -> str:
    """Say what an input provides."""
    if not columns:
        return "all it has"
    parts = []
    for c in columns:
        by = [name for name in ("value", "name") if c[f"by_{name}"]]
        filtered = f", filtered by {' and '.join(by)}" if by else ""
        parts.append(f"node {c['node']} ({c['carries']}{filtered})")
    return ", ".join(parts)
