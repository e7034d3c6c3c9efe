"""A request, and what answers it.

>>> request_of("GET", "/subscriptions/s-1/results?since=7", [])
Request(method='GET', path='/subscriptions/s-1/results', query={'since': '7'}, headers={}, body=b'')
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping

_MOST_FIELDS: Final = 20
_ONCE: Final = frozenset({"host", "authorization", "idempotency-key", "last-event-id", "content-type", "expect"})


class Refusal(Exception):
    """A request that is not done; answered with ``status`` and the message in one line of JSON."""

    def __init__(self, status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.status, self.message, self.headers = status, " ".join(message.split()), headers

    def response(self) -> Response:
        """Return the answer."""
        return as_json({"error": self.message}, self.status, self.headers)


@dataclass(frozen=True, slots=True)
class Request:
    """What a client wants; names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    def number(self, name: str) -> int | None:
        """Return a number from the query; ``Refusal`` if it is none."""
        return None if name not in self.query else number_of(f"?{name}=", self.query[name])


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: a whole body, or parts as they come, for as long as the client stays."""

    status: int = 200
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    parts: AsyncGenerator[bytes, None] | None = field(default=None, compare=False)


def as_json(told: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Response:
    """Answer with one line of JSON."""
    return Response(status, json.dumps(told).encode() + b"\n", (("Content-Type", "application/json"), *headers))


def number_of(what: str, text: str) -> int:
    """Read a document's number.

    >>> number_of("?since=", "12")
    12
    """
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise Refusal(400, f"{what}{text[:50]}: expected the number of a document")
    return int(text)


def request_of(method: str, target: str, headers: Iterable[tuple[str, str]]) -> Request:
    """Read the head of a request; ``Refusal`` says what is wrong with it."""
    if not target.startswith("/"):
        raise Refusal(400, "the target must be a path")
    found: dict[str, str] = {}
    for name, value in headers:
        if name in found and name in _ONCE:
            raise Refusal(400, f"the header {name} is there twice")
        found[name] = value
    try:
        split = urlsplit(target)
        pairs = parse_qsl(split.query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="strict")
        path = unquote(split.path, errors="strict")
    except ValueError:
        raise Refusal(400, "the target cannot be read: it must be UTF-8, with few fields in its query") from None
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refusal(400, "a field of the query is there twice")
    return Request(method, path, dict(pairs), found)
