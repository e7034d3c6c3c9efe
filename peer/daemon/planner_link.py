"""The planner's side of ``planner_desk``: a snapshot fetched and a proposal handed in, part by part."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from peer.daemon.planner_desk import MOST_BYTES, PART_BYTES
from peer.daemon.questions import NoAnswer

if TYPE_CHECKING:
    from collections.abc import Sequence

_ADOPT_S: Final = 600.0
_SNAPSHOT_S: Final = 60.0


class AskSource(Protocol):
    """How the source is asked over the link."""

    async def __call__(self, what: str, body: Any, *, patience_s: float = ...) -> Any:
        """Ask, and return the answer; ``NoAnswer`` if there is none."""


async def fetch_snapshot(ask: AskSource, documents: int) -> dict[str, Any]:
    """Return a snapshot, its documents as text, as the source's own control socket gives it."""
    name = secrets.token_hex(8)
    size = int(await ask("snapshot", {"id": name, "documents": documents}, patience_s=_SNAPSHOT_S))
    if size > MOST_BYTES:
        raise NoAnswer(f"a snapshot of {size:,} bytes; {MOST_BYTES:,} is the most")
    data = bytearray()
    while len(data) < size:
        part = await ask("snapshot_part", {"id": name, "at": len(data)})
        if not part:
            raise NoAnswer(f"the snapshot ended after {len(data):,} of {size:,} bytes")
        data += part
    try:
        found: dict[str, Any] = msgspec.msgpack.decode(bytes(data), type=dict[str, Any])
    except (msgspec.MsgspecError, ValueError, RecursionError) as exc:
        raise NoAnswer(f"the snapshot cannot be read: {exc}") from None
    return found | {"documents": [base64.b64encode(body).decode() for body in found["documents"]]}


async def hand_in(ask: AskSource, base_epoch: int, rows: Sequence[Any], *, is_dry: bool) -> Any:
    """Hand a proposal in, and return what became of it."""
    name, data = secrets.token_hex(8), msgspec.msgpack.encode(rows)
    for at in range(0, len(data), PART_BYTES):
        await ask("proposal_part", {"id": name, "at": at, "data": data[at : at + PART_BYTES]})
    return await ask("adopt", {"id": name, "base_epoch": base_epoch, "dry_run": is_dry}, patience_s=_ADOPT_S)
