"""Server-sent events and pages of lines: nothing lost or held back, and ids that a client can go on behind."""

import json

import pytest
import trio

from peer.http.events import events, lines

GAP, FAILED = {"gap": [0, 4]}, {"document": 6, "name": "d", "error": "too deep"}


def row(number, value="v"):
    return {"document": number, "name": "d", "row": {"a.val": value}}


async def given(entries):
    for one in entries:
        yield one


async def read(entries):
    """Return events as name, id, and data."""
    text = b"".join([part async for part in events(given(entries))]).decode()
    found = []
    for event in text.split("\n\n")[:-1]:
        fields = dict(line.split(": ", 1) for line in event.split("\n"))
        found.append((fields.get("event"), fields.get("id"), json.loads(fields.get("data", "null"))))
    return found


async def test_every_kind_of_entry_has_its_event_and_the_last_of_a_document_its_number():
    told = [GAP, row(5, "1"), row(5, "2"), FAILED, row(7), FAILED | {"document": 7}, {"complete": 9}]
    found = await read(told)
    assert [data for _, _, data in found] == told
    assert [name for name, _, _ in found] == ["gap", "row", "row", "failure", "row", "failure", "complete"]
    # A failure may end the rows of its document: only then is the document done.
    assert [number for _, number, _ in found] == ["4", None, "5", "6", None, "7", "9"]


async def test_line_ends_in_values_do_not_end_an_event():
    value = "a\nb\r\n\r\nevent: row\u2028\x85"
    found = await read([row(1, value), {"complete": 1}])
    assert found[0] == ("row", "1", row(1, value))


@pytest.mark.parametrize("count", [1, 100, 5000])
async def test_rows_are_sent_together_and_none_is_left_behind(count):
    told = [row(number) for number in range(1, count + 1)]
    assert [data for _, _, data in await read([*told, {"complete": count}])] == [*told, {"complete": count}]
    parts = [part async for part in events(given([*told, {"complete": count}]))]
    assert max(map(len, parts)) < 20_000


async def test_no_row_waits_for_news(autojump_clock):
    async def live():
        yield row(1)
        yield {"complete": 1}
        await trio.sleep(3600)
        yield {}

    found = events(live())
    first = await anext(found)
    assert (trio.current_time() < 3600, b'"document": 1' in first, b"complete" in first) == (True, True, True)
    assert await anext(found) == b": alive\n\n"
    await found.aclose()


async def test_a_page_ends_behind_a_whole_document_and_says_where_to_go_on():
    told = [row(1, "1"), row(1, "2"), row(2), {"complete": 3}]
    for limit, wanted in ((1, [*told[:2], {"next": 1}]), (2, [*told[:2], {"next": 1}]), (3, told), (9, told)):
        text = b"".join([part async for part in lines(given(told), limit)])
        assert [json.loads(line) for line in text.splitlines()] == wanted
