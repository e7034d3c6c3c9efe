"""What a planner can ask of the daemon of its home: of the source itself, or of a peer, which asks the source."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from peer.daemon.planner_link import fetch_snapshot, hand_in
from peer.daemon.questions import NoAnswer
from peer.steering.proposal import BadProposal

if TYPE_CHECKING:
    from peer.daemon.control import Handler
    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.source_daemon import SourceDaemon


def peer_planning(daemon: PeerDaemon) -> dict[str, Handler]:
    """Forward to the source, which looks at this machine's roles."""

    async def plan_state(_: dict[str, Any]) -> Any:
        return await daemon.ask_source("plan_state", None)

    async def snapshot(asked: dict[str, Any]) -> Any:
        return await fetch_snapshot(daemon.ask_source, int(asked.get("documents", 40)))

    async def adopt(asked: dict[str, Any]) -> Any:
        is_dry = bool(asked.get("dry_run"))
        return await hand_in(daemon.ask_source, int(asked["base_epoch"]), asked["rows"], is_dry=is_dry)

    return {"plan_state": plan_state, "snapshot": snapshot, "adopt": adopt}


def source_planning(daemon: SourceDaemon) -> dict[str, Handler]:
    """Answer from the catalog."""

    async def plan_state(_: dict[str, Any]) -> Any:
        return daemon.catalog.plan_state()

    async def snapshot(asked: dict[str, Any]) -> Any:
        found = daemon.catalog.snapshot(int(asked.get("documents", 40)))
        return found | {"documents": [base64.b64encode(body).decode() for body in found["documents"]]}

    async def adopt(asked: dict[str, Any]) -> Any:
        try:
            return await daemon.adopt(int(asked["base_epoch"]), asked["rows"], is_dry=bool(asked.get("dry_run")))
        except BadProposal as exc:
            raise NoAnswer(f"the proposal: {exc}") from None

    return {"plan_state": plan_state, "snapshot": snapshot, "adopt": adopt}
