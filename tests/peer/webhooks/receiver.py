"""A receiver of webhooks on loopback, which behaves as it is told."""

import json
from contextlib import asynccontextmanager

import trio


class Receiver:
    """``says``: the status it answers, or 'hang', 'close', 'garbage'; ``got``: what came, whatever it answered."""

    def __init__(self):
        self.says = 200
        self.got = []
        self.taken = []
        self.port = 0
        self.open = 0

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/in?k=1"

    async def serve(self, port, context=None, *, task_status):
        [listener] = await trio.open_tcp_listeners(port, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        listening = listener if context is None else trio.SSLListener(listener, context, https_compatible=True)
        task_status.started()
        await trio.serve_listeners(self._handle, [listening])

    async def _handle(self, stream):
        self.open += 1
        try:
            await self._answer(stream)
        except trio.BrokenResourceError:
            pass  # who posts may refuse the certificate, or lose patience
        finally:
            self.open -= 1

    async def _answer(self, stream):
        data = b""
        while b"\r\n\r\n" not in data:
            data += await self._more(stream)
        top, _, body = data.partition(b"\r\n\r\n")
        first, *lines = top.decode().split("\r\n")
        headers = dict(line.split(": ", 1) for line in lines)
        while len(body) < int(headers["Content-Length"]):
            body += await self._more(stream)
        says = self.says
        self.got.append((first, headers, body))
        if says == "hang":
            await trio.sleep_forever()
        elif says == "garbage":
            await stream.send_all(b"\x00\x01 what\r\n\r\n")
        elif says != "close":
            where = "Location: http://127.0.0.1:1/elsewhere\r\n" if 300 <= says < 400 else ""
            await stream.send_all(f"HTTP/1.1 {says} X\r\n{where}Content-Length: 0\r\n\r\n".encode())
            if says < 300:
                self.taken += json.loads(body)["entries"]

    async def _more(self, stream):
        more = await stream.receive_some(1 << 16)
        if not more:
            raise trio.BrokenResourceError
        return more


@asynccontextmanager
async def receiving(context=None):
    """Run a receiver."""
    async with trio.open_nursery() as nursery:
        receiver = Receiver()
        await nursery.start(receiver.serve, 0, context)
        yield receiver
        nursery.cancel_scope.cancel()
