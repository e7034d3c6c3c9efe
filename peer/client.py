"""The Python client: subscribe, publish and read through the daemon of this machine (trio).

>>> import trio
>>> from distributary import Client
>>> async def show() -> None:
...     async for entry in Client().subscribe("//item[@featured]/name{val}"):
...         print(entry["document"], entry["row"])
"""

from __future__ import annotations

import base64
import json
import os
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from peer.errors import CommandError
from peer.home import VARIABLE, no_daemon
from peer.progress import Progress
from peer.publication import key_of, too_large

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

_SOCKET = "control.sock"


class Client:
    """Talks to the daemon whose folder is given (default: as for the command line)."""

    def __init__(self, home: str | Path | None = None) -> None:
        self.home = Path(home or os.environ.get(VARIABLE) or Path.home() / ".distributary").expanduser()

    async def subscribe(
        self, pattern: str, *, start: str | int = "now", complete: bool = False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Subscribe, and yield what arrives: rows, errors and gaps, as ``read`` does. Each call makes a
        subscription, which lasts until unsubscribed; read it again later with ``read``. Wrap it in ``aclosing``
        where you may stop early."""
        told = await self.ask("subscribe", pattern=pattern, start=start)
        async with aclosing(self.read(told["subscription"], complete=complete)) as entries:
            async for entry in entries:
                yield entry

    async def read(
        self, subscription: str, *, since: int = 0, follow: bool = True, complete: bool = False,
        cursor: str | None = None,
    ) -> AsyncGenerator[dict[str, Any], None]:  # fmt: skip
        """Yield what a subscription has after a document, then what arrives; ``complete``: also up to where
        nothing is missing. With a ``cursor`` it goes on where the last reader of that name was. The cursor passes
        a document after you have asked for what comes behind it, at most once a second: what you may get twice,
        you know by the document's number."""
        asked = {"do": "entries", "subscription": subscription, "since": since, "follow": follow}
        asked |= {} if cursor is None else {"cursor": cursor}
        progress = Progress()
        async with aclosing(self._answers(asked)) as answers:
            async for entry in answers:
                if complete or "complete" not in entry:
                    yield entry
                progress.told(entry)
                upto = None if cursor is None else progress.due(trio.current_time(), entry)
                if upto is not None:
                    await self.ask("move_cursor", subscription=subscription, cursor=cursor, upto=upto)

    async def publish(self, name: str, body: bytes, *, key: str | None = None) -> int:
        """Publish a document and return its number once it is durable. The same key means the same
        document; without one, the same name and content do."""
        if problem := too_large(name, len(body)):
            raise CommandError(problem)
        own = key or key_of(name, body)
        told = await self.ask("publish", name=name, key=own, body=base64.b64encode(body).decode())
        return int(told["number"])

    async def unsubscribe(self, subscription: str) -> int:
        """End a subscription and return the number of the last document it is owed."""
        return int((await self.ask("unsubscribe", subscription=subscription))["end"])

    async def ask(self, do: str, /, **fields: Any) -> dict[str, Any]:
        """Ask the daemon something that has one answer; ``CommandError`` if it refuses or is not there."""
        async with aclosing(self._answers({"do": do, **fields})) as answers:
            found = [answer async for answer in answers]
        return found[0]

    async def _answers(self, asked: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        try:
            stream = await trio.open_unix_socket(str(self.home / _SOCKET))
        except OSError as exc:
            raise CommandError(no_daemon(self.home)) from exc
        async with stream:
            await stream.send_all(json.dumps(asked).encode() + b"\n")
            buffer = bytearray()
            while True:
                more = await stream.receive_some(1 << 16)
                if not more:
                    raise CommandError("the daemon has gone while it was answering; its log says why")
                buffer += more
                if b"\n" not in more:
                    continue  # a long line: look at it once it is whole
                *lines, rest = buffer.split(b"\n")
                buffer = bytearray(rest)
                for line in lines:
                    told = json.loads(line)
                    if "failed" in told:
                        raise CommandError(told["failed"])
                    if told.get("done") is True:
                        return
                    yield told
