"""Server-sent events: what a subscription has got, one event per row, message, error, gap, and watermark.

An event's ``id`` says that everything up to that document was sent; a client that gives the last it saw gets what
comes after it. Of a document with several rows only the last has it: otherwise a client that was cut off between
them would miss the rest.
"""

from __future__ import annotations

import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

CONTENT_TYPE: Final = "text/event-stream; charset=utf-8"
BEAT: Final = b": alive\n\n"
_AT_ONCE: Final = 16 << 10


def kind_of(told: Mapping[str, Any]) -> tuple[str, int]:
    """Return an event's name, and up to which document it goes.

    Browsers tell of broken connections as ``error``, so what went wrong with a document is called ``failure``.

    >>> kind_of({"gap": [3, 9]})
    ('gap', 9)
    """
    if "row" in told:
        return "row", told["document"]
    if "message" in told:
        return "message", told["message"]
    if "error" in told:
        return "failure", told["document"]
    return ("gap", told["gap"][1]) if "gap" in told else ("complete", told["complete"])


def event_of(told: Mapping[str, Any], *, is_last: bool) -> bytes:
    """Write one event; JSON has no line ends, so its data is one line.

    >>> event_of({"complete": 7}, is_last=True)
    b'event: complete\\nid: 7\\ndata: {"complete": 7}\\n\\n'
    """
    name, upto = kind_of(told)
    number = f"id: {upto}\n" if is_last else ""
    return f"event: {name}\n{number}data: {json.dumps(told)}\n\n".encode()


async def events(entries: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[bytes, None]:
    """Write events; an entry that tells nothing becomes a comment, which keeps the connection alive.

    Rows wait for each other up to a few KB: behind the last there is always a watermark, so none waits for news.
    """
    held: dict[str, Any] | None = None
    out = bytearray()
    async with aclosing(entries):
        async for told in entries:
            if held is not None:
                out += event_of(held, is_last=told.get("document") != held["document"])
            held = told if "row" in told else None
            if held is None:
                out += event_of(told, is_last=True) if told else BEAT
            if held is None or len(out) >= _AT_ONCE:
                yield bytes(out)
                out.clear()


async def lines(entries: AsyncGenerator[dict[str, Any], None], limit: int) -> AsyncGenerator[bytes, None]:
    """Write JSON lines: whole documents, and no more of them once ``limit`` lines are out; then where to go on."""
    count, before = 0, None
    out = bytearray()
    async with aclosing(entries):
        async for told in entries:
            _, upto = kind_of(told)
            if count >= limit and before is not None and before != upto and "complete" not in told:
                out += json.dumps({"next": before}).encode() + b"\n"
                break
            out += json.dumps(told).encode() + b"\n"
            count, before = count + 1, upto
            if len(out) >= _AT_ONCE:
                yield bytes(out)
                out.clear()
    if out:
        yield bytes(out)
