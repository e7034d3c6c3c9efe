"""One plan: snapshot, batch, proposal; and again, a few times, if another plan was adopted meanwhile."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

import trio

from peer.replanning.batch import plan_command, run_batch
from peer.replanning.errors import NothingToPlan, PlanFailed
from peer.replanning.files import read_rows, write_snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """How to plan. ``keep``: where the plan stays; ``is_dry``: nothing is adopted; ``is_shown``: the batch shows
    its progress on standard error itself; ``is_quick``: latency is lowered once utilization is least."""

    documents: int = 40
    master: str = "local[*]"
    time_limit_s: float | None = None
    batch_limit_s: float = 7200.0
    keep: Path | None = None
    is_dry: bool = False
    is_shown: bool = False
    is_quick: bool = True


class Asking(Protocol):
    """How a daemon that reaches the source is asked."""

    async def __call__(self, do: str, /, **fields: Any) -> dict[str, Any]:
        """Ask something that has one answer; ``CommandError`` if it is refused."""


async def plan_once(ask: Asking, options: PlanOptions, told: Callable[[str, str], None]) -> dict[str, Any]:
    """Plan, and return what the source made of it; ``CommandError`` if nothing came of it."""
    begun = time.monotonic()
    for _ in range(_TRIES):
        found = await ask("snapshot", documents=options.documents)
        if not found["subscriptions"]:
            raise NothingToPlan("nobody is subscribed yet; there is nothing to plan")
        if not found["documents"]:
            raise NothingToPlan("nothing was published yet; publish a few documents, for a plan needs a sample")
        told(
            "snapshot",
            f"{len(found['subscriptions']):,} subscriptions on {len(found['sites']):,} machines, "
            f"{len(found['documents']):,} documents, epoch {found['epoch']}",
        )
        rows = await _rows(found, options, told)
        answer = await ask("adopt", base_epoch=found["epoch"], rows=rows, dry_run=options.is_dry)
        if "stale" not in answer:
            return answer | {"seconds": round(time.monotonic() - begun, 1)}
        told("stale", answer["stale"])
    raise PlanFailed(f"{_TRIES} times another plan was adopted meanwhile; who else is planning?")


async def _rows(
    found: dict[str, Any], options: PlanOptions, told: Callable[[str, str], None]
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="distributary-replan-") as scratch:
        folder = Path(scratch)
        await trio.to_thread.run_sync(write_snapshot, found, folder)
        out = options.keep or folder / "plan"
        command = plan_command(found, folder, out, options)
        await run_batch(command, options.batch_limit_s, told, is_shown=options.is_shown)
        return await trio.to_thread.run_sync(read_rows, out)
