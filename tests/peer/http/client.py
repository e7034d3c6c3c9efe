"""A plain HTTP client for tests: bytes on a socket, so that anything can be said."""

import json
from dataclasses import dataclass

import trio

PATIENCE_S = 30


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def lines(self):
        return [json.loads(line) for line in self.body.splitlines()]


def head(method, target, headers):
    """Write a request's head; ``Host`` is there unless given, or given as None."""
    told = {"Host": "localhost", "Connection": "close"} | headers
    lines = [f"{name}: {value}" for name, value in told.items() if value is not None]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""]).encode()


def bearing(token, **headers):
    """Return headers with a token; underscores in names are dashes."""
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    return told if token is None else {"Authorization": f"Bearer {token}"} | told


async def ask(port, target, *, method="GET", token=None, body=b"", **headers):
    """Ask once and return the answer."""
    told = bearing(token, **headers)
    if body:
        told["Content-Length"] = str(len(body))
    return await say(port, head(method, target, told) + body)


async def say(port, data):
    """Send bytes, and read what comes until the other side closes."""
    with trio.fail_after(PATIENCE_S):
        async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
            await stream.send_all(data)
            return parse(await rest_of(stream))


async def rest_of(stream):
    """Read until the other side closes."""
    data = b""
    while more := await stream.receive_some(1 << 16):
        data += more
    return data


def parse(data):
    """Read one answer, whose connection has closed."""
    top, _, body = data.partition(b"\r\n\r\n")
    first, *rest = top.decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in rest)}
    if headers.get("transfer-encoding") == "chunked":
        body = unchunked(body)
    return Answer(int(first.split()[1]), headers, body)


def unchunked(data):
    """Put chunks together."""
    whole = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        whole, data = whole + data[: int(size, 16)], data[int(size, 16) + 2 :]
    return whole


class Events:
    """A stream of server-sent events, read one at a time."""

    def __init__(self, stream):
        self._stream, self._raw, self._text = stream, b"", b""

    async def next(self):
        """Return the next event as a dict of its fields; a comment is {'': text}."""
        with trio.fail_after(PATIENCE_S):
            while b"\n\n" not in self._text:
                more = await self._stream.receive_some(1 << 16)
                assert more, "the stream has ended"
                self._raw += more
                self._take_chunks()
        event, _, self._text = self._text.partition(b"\n\n")
        return {name: value for name, _, value in (line.partition(": ") for line in event.decode().split("\n"))}

    def _take_chunks(self):
        if self._raw.startswith(b"HTTP/"):
            if b"\r\n\r\n" not in self._raw:
                return
            top, _, self._raw = self._raw.partition(b"\r\n\r\n")
            assert b" 200 " in top.split(b"\r\n")[0], top
        while b"\r\n" in self._raw:
            size, _, rest = self._raw.partition(b"\r\n")
            length = int(size, 16)
            if len(rest) < length + 2:
                return
            self._text, self._raw = self._text + rest[:length], rest[length + 2 :]


async def open_events(port, target, token, **headers):
    """Open a stream; the caller closes what comes first."""
    stream = await trio.open_tcp_stream("127.0.0.1", port)
    await stream.send_all(head("GET", target, bearing(token, **headers)))
    return stream, Events(stream)


async def until(condition):
    """Wait for a condition."""
    with trio.fail_after(PATIENCE_S):
        while not condition():
            await trio.sleep(0.01)
