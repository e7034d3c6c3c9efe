"""The Spark batch as a process of its own: what it says, how long it may take, how it ends with us."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import trio

from peer.replanning.errors import PlanFailed
from peer.replanning.files import DOCUMENTS, SITES, SUBSCRIPTIONS
from peer.steering.weights import LIVE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from peer.replanning.planning import PlanOptions

_MOST_SAID: Final = 64 << 10


def plan_command(found: dict[str, Any], folder: Path, out: Path, options: PlanOptions) -> list[str]:
    """Return the command that plans what a folder holds."""
    command = [
        sys.executable, "-m", "peer", "plan", "--subscriptions", str(folder / SUBSCRIPTIONS), "--sites",
        str(folder / SITES), "--documents", str(folder / DOCUMENTS), "--out", str(out), "--max-feeds",
        "none", "--master", options.master, "--link-weight", str(LIVE.link), "--no-joins", "--json",
    ]  # fmt: skip
    if not options.is_quick:
        command.append("--no-latency")
    if found["source_feeds"] is not None:
        command += ["--source-feeds", str(found["source_feeds"])]
    if options.time_limit_s is not None:
        command += ["--time-limit", str(options.time_limit_s)]
    return command


async def run_batch(
    command: list[str], limit_s: float, told: Callable[[str, str], None], *, is_shown: bool
) -> None:
    """Run a batch; ``PlanFailed`` if it fails or takes too long. Cancelled, or late, it is ended.

    ``told`` hears its stages as they end; or, ``is_shown``, the user sees them on standard error.
    """
    last = ["it said nothing"]

    async def listen(stream: trio.abc.ReceiveStream) -> None:
        kept = b""
        async for data in stream:
            *lines, kept = (kept + data)[-_MOST_SAID:].split(b"\n")
            for line in lines:
                last[0] = line.decode(errors="replace")
                stage, _, what = last[0].partition(": ")
                told(stage[:100], what[:1000])

    with trio.move_on_after(limit_s) as late:
        async with trio.open_nursery() as nursery:
            process: trio.Process = await nursery.start(_process, command, is_shown)
            if process.stderr is not None:
                await listen(process.stderr)
    if late.cancelled_caught:
        raise PlanFailed(f"the batch took longer than {limit_s:,.0f} s and was ended; nothing has changed")
    if process.returncode:
        why = "what stands above says why" if is_shown else last[0]
        raise PlanFailed(f"the plan could not be made; {why}; nothing has changed")


async def _process(command: list[str], is_shown: bool, *, task_status: trio.TaskStatus[trio.Process]) -> None:
    await trio.run_process(
        command, stdout=subprocess.DEVNULL, stderr=None if is_shown else subprocess.PIPE, check=False,
        task_status=task_status,
    )  # fmt: skip
