"""The control socket: who follows is followed no longer than it stays."""

import json
import socket

import pytest
import trio
import trio.testing

from peer.daemon.control import SOCKET, serve_control
from peer.daemon.questions import NoAnswer
from peer.errors import CommandError, TryAgain
from peer.home import Conversation


async def asking(home, asked):
    stream = await trio.open_unix_socket(str(home / SOCKET))
    await stream.send_all(json.dumps(asked).encode() + b"\n")
    return stream


async def test_a_follower_ends_at_once_when_its_command_goes(tmp_path):
    began, ended = trio.Event(), trio.Event()

    async def follow(_):
        try:
            yield {"complete": 1}
            began.set()
            await trio.sleep_forever()
        finally:
            ended.set()

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path, {"entries": follow})
        stream = await asking(tmp_path, {"do": "entries", "follow": True})
        with trio.fail_after(30):
            assert json.loads(await stream.receive_some(1000)) == {"complete": 1}
            await began.wait()
            await stream.aclose()
            await ended.wait()
        assert ended.is_set()
        nursery.cancel_scope.cancel()


async def test_what_was_begun_without_following_is_finished_though_its_command_goes(tmp_path):
    began, may_end, ended = trio.Event(), trio.Event(), trio.Event()

    async def change(_):
        began.set()
        await may_end.wait()
        ended.set()
        yield {}

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path, {"change": change})
        stream = await asking(tmp_path, {"do": "change"})
        with trio.fail_after(30):
            await began.wait()
            await stream.aclose()
            await trio.testing.wait_all_tasks_blocked(0.05)
            may_end.set()
            await ended.wait()
        assert ended.is_set()
        nursery.cancel_scope.cancel()


async def test_who_follows_what_is_refused_is_told_why(tmp_path):
    async def refuse(_):
        raise ValueError("there is no such subscription")
        yield {}

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path, {"entries": refuse})
        stream = await asking(tmp_path, {"do": "entries", "follow": True})
        with trio.fail_after(30):
            assert json.loads(await stream.receive_some(1000)) == {"failed": "there is no such subscription"}
            await stream.aclose()
        nursery.cancel_scope.cancel()


async def test_what_another_daemon_does_is_refused_with_where_to_ask(tmp_path):
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path, {"subscribe": None})
        stream = await asking(tmp_path, {"do": "space_create"})
        with trio.fail_after(30):
            told = json.loads(await stream.receive_some(1000))["failed"]
            await stream.aclose()
        assert told == "this is for the source alone; name its folder with --home"
        nursery.cancel_scope.cancel()


async def test_a_conversation_has_any_number_of_requests_and_a_refusal_does_not_end_it(tmp_path):
    async def double(asked):
        if asked["number"] < 0:
            raise NoAnswer("it is below 0")
        return {"number": 2 * asked["number"]}

    def converse():
        with Conversation(tmp_path) as daemon:
            first = daemon.one("double", number=4)
            with pytest.raises(CommandError, match="below 0"):
                daemon.one("double", number=-1)
            return first, daemon.one("double", number=5)

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path, {"double": double})
        with trio.fail_after(30):
            assert await trio.to_thread.run_sync(converse) == ({"number": 8}, {"number": 10})
        nursery.cancel_scope.cancel()


async def test_answers_that_were_not_read_are_not_taken_for_others(tmp_path):
    async def count(_):
        for i in range(3):
            yield {"number": i}

    def converse():
        with Conversation(tmp_path) as daemon:
            first = next(daemon.ask("count"))
            with pytest.raises(TryAgain, match="begin another"):
                daemon.one("count")
            return first

    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path, {"count": count})
        with trio.fail_after(30):
            assert await trio.to_thread.run_sync(converse) == {"number": 0}
        nursery.cancel_scope.cancel()


async def test_what_is_no_request_is_refused(tmp_path):
    async with trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path, {})
        stream = await trio.open_unix_socket(str(tmp_path / SOCKET))
        await stream.send_all(b"nonsense\n")
        with trio.fail_after(30):
            assert "failed" in json.loads(await stream.receive_some(1000))
        await stream.aclose()
        nursery.cancel_scope.cancel()


async def test_a_daemon_that_is_halted_is_asked_for_so_long_only(tmp_path):
    with socket.socket(socket.AF_UNIX) as halted:
        halted.bind(str(tmp_path / "control.sock"))
        halted.listen(1)
        with Conversation(tmp_path, patience_s=0.05) as daemon, pytest.raises(TryAgain, match=r"for 0\.05 s"):
            daemon.one("status")
