"""What the command line can ask of a daemon about spaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from peer.daemon.declared import decode_space
from peer.daemon.source_spaces import SpacePublish

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peer.daemon.control import Handler
    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.source_daemon import SourceDaemon


def source_space_controls(daemon: SourceDaemon) -> dict[str, Handler]:
    """List what the source does with spaces for its operator."""

    async def create(asked: dict[str, Any]) -> Any:
        return daemon.spaces.create(decode_space(msgspec.json.encode(asked["space"])))

    async def listed(_: dict[str, Any]) -> AsyncGenerator[Any, None]:
        for one in daemon.spaces.listed():
            yield one

    async def publish(asked: dict[str, Any]) -> Any:
        return await daemon.spaces.publish(daemon.site, msgspec.convert(_message(asked), SpacePublish))

    return {"space_create": create, "spaces": listed, "space_publish": publish}


def peer_space_controls(daemon: PeerDaemon) -> dict[str, Handler]:
    """List what a peer does with spaces for its users."""

    async def subscribe(asked: dict[str, Any]) -> Any:
        return await daemon.spaces.subscribe(asked["space"], asked["filter"])

    async def publish(asked: dict[str, Any]) -> Any:
        return await daemon.ask_source("space_publish", _message(asked))

    async def unsubscribe(asked: dict[str, Any]) -> Any:
        name = asked["subscription"]
        return await (daemon.spaces if name in daemon.spaces.subscriptions else daemon).unsubscribe(name)

    async def standing(_: dict[str, Any]) -> AsyncGenerator[Any, None]:
        for one in daemon.spaces.standing():
            yield one

    return {
        "space_subscribe": subscribe, "space_publish": publish, "unsubscribe": unsubscribe,
        "subscriptions_in_spaces": standing,
    }  # fmt: skip


def _message(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: asked[name] for name in ("space", "key", "attributes", "payload")}
