"""The server by itself, on real sockets: what clients may do, and what becomes of those who do more."""

import random
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
import trio

from peer.http.exchange import Response, as_json
from peer.http.limits import HttpLimits
from peer.http.routes import Route, Routes
from peer.http.serving import Server
from tests.peer.http.client import PATIENCE_S, ask, bearing, head, rest_of, say, until

TOKEN = "t" * 40
SMALL = HttpLimits(head_bytes=2000, body_bytes=1000, connections=4, streams=1, bodies=1)


@asynccontextmanager
async def serving(**changed):
    """Run a server with a page that is open, one that takes a body, one that streams, and one that fails."""
    made = []

    async def page(request, parts):
        return as_json({"query": dict(request.query), "parts": parts})

    async def echo(request, _):
        return Response(200, request.body)

    async def stream(_, __):
        async def parts():
            try:
                for number in range(10**6):
                    made.append(number)
                    yield b"x" * 1000
            finally:
                made.append("closed")

        return Response(200, parts=parts())

    async def silent(_, __):
        async def parts():
            try:
                yield b"x"
                await trio.sleep_forever()
            finally:
                made.append("closed")

        return Response(200, parts=parts())

    async def broken(_, __):
        raise ZeroDivisionError

    routes = [
        Route("GET", "/open", page, is_open=True), Route("GET", "/broken", broken),
        Route("GET", "/page/{}", page, fields=("x", "y")),
        Route("POST", "/echo", echo, takes_body=True), Route("GET", "/stream", stream),
        Route("GET", "/silent", silent),
    ]  # fmt: skip
    server = Server(Routes(routes), TOKEN, replace(SMALL, **changed))
    server.made = made
    async with trio.open_nursery() as nursery:
        server.port = await nursery.start(server.serve, 0)
        yield server
        nursery.cancel_scope.cancel()


async def test_a_page_is_found_by_its_path_and_gets_its_query():
    async with serving() as server:
        answer = await ask(server.port, "/page/a%20b?x=1&y=", token=TOKEN)
        assert (answer.status, answer.json) == (200, {"query": {"x": "1", "y": ""}, "parts": ["a b"]})
        assert (await ask(server.port, "/open")).status == 200


@pytest.mark.parametrize(
    ("target", "method", "headers", "status"),
    [
        ("/page/1", "GET", {"Authorization": f"Bearer {'u' * 40}"}, 401),
        ("/page/1", "GET", {"Authorization": TOKEN}, 401),
        ("/page/1", "GET", {}, 401),
        ("/nothing", "GET", {}, 401),
        ("/nothing", "GET", bearing(TOKEN), 404),
        ("/page/1/2", "GET", bearing(TOKEN), 404),
        ("/open", "DELETE", {}, 405),
        ("/open", "GET", {"Host": "evil.example"}, 421),
        ("/open", "GET", {"Host": "localhost.evil.example"}, 421),
        ("/open", "GET", {"Host": "127.0.0.1:80@evil.example"}, 421),
        ("/open", "GET", {"Host": None}, 400),
        ("/open?a=1&a=2", "GET", {}, 400),
        ("/open?a=%ff", "GET", {}, 400),
        ("http://localhost/open", "GET", {}, 400),
        ("/open", "GET", {"Content-Length": "5"}, 413),
        ("/broken", "GET", bearing(TOKEN), 500),
    ],
)
async def test_what_is_not_done_is_said_in_one_line(target, method, headers, status):
    async with serving() as server:
        answer = await say(server.port, head(method, target, headers))
        assert answer.status == status
        assert list(answer.json) == ["error"]
        assert answer.body.count(b"\n") == 1
        assert (await ask(server.port, "/open")).status == 200


@pytest.mark.parametrize("target", ["/open?x=1", "/page/1", "/nothing", "/broken"])
async def test_head_is_answered_like_get_without_the_body(target, caplog):
    async with serving() as server:
        whole = await ask(server.port, target, token=TOKEN)
        answer = await ask(server.port, target, token=TOKEN, method="HEAD")
        assert (answer.status, answer.headers, answer.body) == (whole.status, whole.headers, b"")
        assert len(caplog.records) == (2 if target == "/broken" else 0)  # the page's own fault, twice


async def test_head_of_a_stream_begins_none():
    async with serving() as server:
        answer = await ask(server.port, "/stream", token=TOKEN, method="HEAD")
        assert (answer.status, answer.body, server.made, server.streams) == (200, b"", [], 0)
        assert "content-length" not in answer.headers


async def test_after_a_head_the_connection_goes_on():
    async with serving() as server:
        one = head("HEAD", "/open?n=1", {"Connection": "keep-alive"})
        answer = await say(server.port, one + head("GET", "/open?n=2", {}))
        assert answer.body.startswith(b"HTTP/1.1 200")  # the second lies right behind the head of the first
        assert answer.body.endswith(b'{"query": {"n": "2"}, "parts": []}\n')


async def test_head_is_refused_where_there_is_nothing_to_get():
    async with serving() as server:
        answer = await ask(server.port, "/echo", method="HEAD", token=TOKEN)
        assert (answer.status, answer.headers["allow"], answer.body) == (405, "POST", b"")
        assert (await ask(server.port, "/open", method="DELETE")).headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:9000", "127.0.0.1", "127.0.0.1:1", "[::1]:80"])
async def test_this_machine_may_be_called_by_its_names(host):
    async with serving() as server:
        assert (await ask(server.port, "/open", Host=host)).status == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400),
        (b"GET /open\r\n\r\n", 400),
        (b"GET /open HTTP/1.1\r\nHost: localhost\r\nX: " + b"y" * 3000, 431),
        (b"GET /open HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (b"GET /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
    ],
)
async def test_what_is_no_request_ends_its_connection_only(data, status):
    async with serving() as server:
        assert (await say(server.port, data)).status == status
        assert (await ask(server.port, "/open")).status == 200


async def test_requests_on_one_connection_are_answered_in_order():
    async with serving() as server:
        one = head("GET", "/open?n=1", {"Connection": "keep-alive"})
        answer = await say(server.port, one + head("GET", "/open?n=2", {}))
        assert answer.body.count(b"HTTP/1.1 200") == 1  # the second lies behind the first
        assert answer.body.index(b'"1"') < answer.body.index(b'"2"')


async def test_a_body_arrives_whole_or_chunked():
    async with serving() as server:
        assert (await ask(server.port, "/echo", method="POST", token=TOKEN, body=b"abc")).body == b"abc"
        chunks = b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
        asked = head("POST", "/echo", bearing(TOKEN, Transfer_Encoding="chunked"))
        assert (await say(server.port, asked + chunks)).body == b"abc"


async def test_a_body_that_is_too_large_is_refused_before_and_while_it_comes():
    async with serving() as server:
        answer = await ask(server.port, "/echo", method="POST", token=TOKEN, body=b"x" * 1001)
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        asked = head("POST", "/echo", bearing(TOKEN, Transfer_Encoding="chunked"))
        chunk = b"200\r\n" + b"x" * 512 + b"\r\n"
        assert (await say(server.port, asked + 4 * chunk)).status == 413


async def test_who_expects_to_be_told_to_go_on_is_told_so_unless_refused():
    async with serving() as server:
        told = bearing(TOKEN, Expect="100-continue")
        async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream:
            await stream.send_all(head("POST", "/echo", told | {"Content-Length": "3"}))
            with trio.fail_after(PATIENCE_S):
                assert (await stream.receive_some(1000)).startswith(b"HTTP/1.1 100 ")
                await stream.send_all(b"abc")
                assert (await rest_of(stream)).endswith(b"abc")
        assert (await say(server.port, head("POST", "/echo", told | {"Content-Length": "3000"}))).status == 413


@pytest.mark.parametrize(
    ("changed", "sent", "status"),
    [
        ({"idle_s": 0.05}, b"", None),
        ({"head_s": 0.05}, b"GET /open HT", 408),
        ({"body_s": 0.05}, head("POST", "/echo", bearing(TOKEN, Content_Length="9")), 408),
    ],
)
async def test_who_sends_nothing_or_too_slowly_is_let_go(changed, sent, status):
    async with serving(**changed) as server:
        async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream:
            if sent:
                await stream.send_all(sent)
            with trio.fail_after(PATIENCE_S):
                found = await rest_of(stream)
        assert (found == b"") if status is None else found.startswith(f"HTTP/1.1 {status} ".encode())
        await until(lambda: server.connections == 0)


async def test_connections_beyond_the_limit_are_turned_away():
    async with serving() as server:
        held = [await trio.open_tcp_stream("127.0.0.1", server.port) for _ in range(4)]
        await until(lambda: server.connections == 4)
        assert (await ask(server.port, "/open")).status == 503
        await held[0].aclose()
        await until(lambda: server.connections == 3)
        assert (await ask(server.port, "/open")).status == 200
        for stream in held:
            await stream.aclose()


async def test_a_flood_of_connections_is_dropped():
    async with serving() as server:
        held = [await trio.open_tcp_stream("127.0.0.1", server.port) for _ in range(30)]
        with trio.fail_after(PATIENCE_S):
            ended = [await stream.receive_some(1) for stream in held[8:]]
        assert ended.count(b"") >= 22 - 4  # the others were told that there are too many
        for stream in held:
            await stream.aclose()
        await until(lambda: server.connections == 0)
        assert (await ask(server.port, "/open")).status == 200


async def test_a_client_that_does_not_read_costs_buffers_only_and_is_let_go():
    async with serving(write_s=0.3) as server:
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        await stream.send_all(head("GET", "/stream", bearing(TOKEN)))
        await until(lambda: server.streams == 1)
        refused = await ask(server.port, "/stream", token=TOKEN)
        assert (refused.status, "retry-after" in refused.headers) == (503, True)
        await until(lambda: server.streams == 0)
        assert server.made[-1] == "closed"
        assert server.made[-2] < 100_000  # far from all: what sockets hold, made when there was room
        await stream.aclose()


async def test_a_stream_ends_at_once_when_its_client_closes():
    async with serving() as server:
        stream = await trio.open_tcp_stream("127.0.0.1", server.port)
        await stream.send_all(head("GET", "/silent", bearing(TOKEN)))
        data = b""
        with trio.fail_after(PATIENCE_S):
            while not data.endswith(b"x\r\n"):
                data += await stream.receive_some(1000)
        assert server.streams == 1
        await stream.aclose()
        await until(lambda: server.connections == 0)
        assert (server.made, server.streams) == (["closed"], 0)


async def test_random_bytes_end_their_connection_only():
    rng = random.Random(7)
    starts = [
        b"",
        b"GET /open HTTP/1.1\r\nHost: localhost\r\n",
        head("POST", "/echo", bearing(TOKEN, Content_Length="50")),
    ]
    async with serving(head_s=0.2, body_s=0.2, idle_s=0.2) as server:
        for _ in range(60):
            data = rng.choice(starts) + rng.randbytes(rng.randrange(1, 3000))
            with trio.fail_after(PATIENCE_S):
                async with await trio.open_tcp_stream("127.0.0.1", server.port) as stream:
                    try:
                        await stream.send_all(data)
                        await stream.send_eof()
                        found = await rest_of(stream)
                    except trio.BrokenResourceError:
                        continue  # it was let go before it had said everything
            assert found[:9] in (b"", b"HTTP/1.1 ")
        await until(lambda: server.connections == 0)
        assert (await ask(server.port, "/open")).status == 200
