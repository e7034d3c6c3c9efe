"""What the command line can ask of a daemon."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from peer.daemon.planning_controls import peer_planning, source_planning
from peer.daemon.reading_controls import reading_controls
from peer.daemon.resigning import resign
from peer.daemon.space_controls import peer_space_controls, source_space_controls
from peer.hosting.rows import read_pattern
from xmlmatch import Pattern

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peer.daemon.control import Handler
    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.source_daemon import SourceDaemon


def peer_controls(daemon: PeerDaemon) -> dict[str, Handler]:
    """List what a peer does for its users."""

    async def subscribe(asked: dict[str, Any]) -> Any:
        pattern = Pattern.parse(asked["pattern"])
        if "columns" in asked:
            pattern = read_pattern(pattern.text, msgspec.msgpack.encode(asked["columns"]))
        return await daemon.subscribe(pattern, start=asked.get("start", "now"), limit=asked.get("limit"))

    async def publish(asked: dict[str, Any]) -> Any:
        return await daemon.publish(asked["name"], asked["key"], base64.b64decode(asked["body"]))

    async def status(asked: dict[str, Any]) -> Any:
        if asked.get("lag") is False:  # which the source is asked for
            return daemon.status()
        return daemon.status() | {"lag": await daemon.lag()}

    def drain(_: dict[str, Any]) -> AsyncGenerator[Any, None]:
        return daemon.drain()

    def leave_network(asked: dict[str, Any]) -> AsyncGenerator[Any, None]:
        return resign(daemon, wait_s=float(asked["wait"]), is_forced=bool(asked["force"]))

    async def end_drain(_: dict[str, Any]) -> Any:
        await daemon.end_drain()
        return {"feeds": daemon.host.feeds_given}

    async def trace(asked: dict[str, Any]) -> Any:
        return await daemon.trace(int(asked["document"]), str(asked["subscription"]))

    async def subscriptions(_: dict[str, Any]) -> AsyncGenerator[Any, None]:
        for one in daemon.status()["subscriptions"]:
            yield one

    own: dict[str, Handler] = {
        "subscribe": subscribe, "publish": publish,
        "status": status, "subscriptions": subscriptions, "trace": trace, "drain": drain,
        "end_drain": end_drain, "leave_network": leave_network,
    }  # fmt: skip
    return own | reading_controls(daemon) | peer_planning(daemon) | peer_space_controls(daemon)


def source_controls(daemon: SourceDaemon) -> dict[str, Handler]:
    """List what the source does for its operator."""

    async def publish(asked: dict[str, Any]) -> Any:
        return await daemon.publish(daemon.site, asked["name"], asked["key"], base64.b64decode(asked["body"]))

    async def invite(asked: dict[str, Any]) -> Any:
        return daemon.invite(asked["site"], asked["roles"], float(asked["hours"]))

    async def revoke(asked: dict[str, Any]) -> Any:
        if not asked.get("force"):
            daemon.members.check_known(asked["site"])
        return await daemon.revoke(asked["site"])

    async def backup(asked: dict[str, Any]) -> Any:
        return await daemon.backup(Path(asked["file"]))

    async def status(_: dict[str, Any]) -> Any:
        told = daemon.status() | await daemon.catalog.overview(daemon.links.sites)
        for machine in told["machines"]:
            machine["departed"] = daemon.members.departed.how(machine["site"])
        return told

    async def trace(asked: dict[str, Any]) -> Any:
        return await daemon.tracing.trace(int(asked["document"]), str(asked["subscription"]))

    return {
        "publish": publish, "invite": invite, "revoke": revoke, "status": status,
        "trace": trace, "backup": backup,
    } | source_planning(daemon) | source_space_controls(daemon)  # fmt: skip
