"""What the command line can ask of a peer about results: reading them, cursors, webhooks."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from peer.daemon.cursors import check_cursor
from peer.daemon.questions import NoAnswer
from peer.daemon.readers import readers_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peer.daemon.control import Handler
    from peer.daemon.peer_daemon import PeerDaemon


def reading_controls(daemon: PeerDaemon) -> dict[str, Handler]:
    """List what a peer does for those who read."""

    async def entries(asked: dict[str, Any]) -> AsyncGenerator[Any, None]:
        name, since = asked["subscription"], int(asked.get("since", 0))
        reading, cursors = readers_of(daemon, name)
        if "cursor" in asked:
            since = await cursors.begin(name, check_cursor(asked["cursor"]), since)
        async with aclosing(reading.entries(name, since, follow=bool(asked.get("follow")))) as found:
            async for one in found:
                yield one

    async def cursors(asked: dict[str, Any]) -> AsyncGenerator[Any, None]:
        name = asked.get("subscription")
        of = [daemon.cursors, daemon.spaces.cursors] if name is None else [readers_of(daemon, name).cursors]
        for cursors in of:
            for one in await cursors.listed(name):
                yield one

    async def move_cursor(asked: dict[str, Any]) -> Any:
        name = asked["subscription"]
        await readers_of(daemon, name).cursors.move(name, check_cursor(asked["cursor"]), int(asked["upto"]))
        return {}

    async def remove_cursor(asked: dict[str, Any]) -> Any:
        name = asked["subscription"]
        await readers_of(daemon, name).cursors.remove(name, check_cursor(asked["cursor"]))
        return {}

    async def add_webhook(asked: dict[str, Any]) -> Any:
        name = asked["subscription"]
        if name in daemon.spaces.subscriptions:
            how = f"read them with 'distributary messages {name} --follow', or over HTTP"
            raise NoAnswer(f"{name} is in a space, and webhooks do not post messages of spaces; {how}")
        since, secret = int(asked.get("since", 0)), asked.get("secret")
        return await daemon.webhooks.add(name, asked["url"], since=since, secret=secret)

    async def webhooks(_: dict[str, Any]) -> AsyncGenerator[Any, None]:
        for one in daemon.webhooks.standing():
            yield one

    async def remove_webhook(asked: dict[str, Any]) -> Any:
        return await daemon.webhooks.remove(asked["webhook"])

    return {
        "entries": entries, "cursors": cursors, "move_cursor": move_cursor, "remove_cursor": remove_cursor,
        "add_webhook": add_webhook, "webhooks": webhooks, "remove_webhook": remove_webhook,
    }  # fmt: skip
