"""What the daemons offer over HTTP, on real sockets and stores."""

import json
import re

import pytest

from peer.errors import CommandError
from peer.http.access import TOKEN_FILE, token_in
from peer.http.limits import HttpLimits
from peer.http.pages import peer_server
from tests.peer.http.client import ask, open_events, until
from tests.peer.http.daemons import TOKEN, http_network
from xmlmatch import Pattern

TWO = b"<r><a><b>1</b><b>2</b></a></r>"
ONE = b"<r><a><b>3</b></a></r>"
NONE = b"<r/>"


async def subscribed(found, text="//b{val}"):
    return (await found.peer.subscribe(Pattern.parse(text)))["subscription"]


async def complete(found, name, upto):
    await until(lambda: found.peer.host.subscriptions[name].committed >= upto)


async def test_documents_are_published_once_by_their_key(tmp_path):
    async with http_network(tmp_path) as found:
        for port in (found.source_port, found.port):
            told = {"method": "POST", "token": TOKEN, "Idempotency_Key": f"k-{port}"}
            first = await ask(port, "/publish?name=a.xml", body=ONE, **told)
            again = await ask(port, "/publish?name=a.xml", body=ONE, **told)
            other = await ask(port, "/publish?name=a.xml", body=TWO, **told)
            assert (first.status, again.status, other.status) == (201, 200, 422)
            assert first.json["number"] == again.json["number"] == found.source.log.last
            assert found.source.log.document(first.json["number"]).body == ONE
        unnamed = [await ask(found.port, "/publish", method="POST", token=TOKEN, body=NONE) for _ in range(2)]
        assert [one.json["is_new"] for one in unnamed] == [True, False]


async def test_what_cannot_be_published_is_refused(tmp_path):
    async with http_network(tmp_path) as found:
        before = found.source.log.last
        for body, key, status in ((b"", "k", 400), (b"<r>", "k", 422), (b"<r/>", "k" * 1001, 400)):
            told = {"method": "POST", "token": TOKEN, "Idempotency_Key": key}
            answer = await ask(found.source_port, "/publish", body=body, **told)
            assert (answer.status, list(answer.json)) == (status, ["error"])
        assert found.source.log.last == before


async def test_a_machine_that_is_no_publisher_cannot_publish(tmp_path):
    async with http_network(tmp_path) as found:
        other = await found.network.start_peer("p2")
        server = peer_server(other, tmp_path / "p2", TOKEN, HttpLimits())
        port = await found._nursery.start(server.serve, 0)
        assert (await ask(port, "/publish", method="POST", token=TOKEN, body=ONE)).status == 403


async def test_a_stream_tells_rows_watermarks_and_goes_on_after_what_was_seen(tmp_path):
    async with http_network(tmp_path, beat_s=0.05) as found:
        name = await subscribed(found)
        first, second, third = await found.publish(TWO, NONE, ONE)
        await complete(found, name, third)
        stream, events = await open_events(found.port, f"/subscriptions/{name}/stream", TOKEN)
        told = [await events.next() for _ in range(4)]
        assert [one["event"] for one in told] == ["row", "row", "row", "complete"]
        # Only when all rows of a document are out does a client that is cut off go on behind it.
        assert [one.get("id") for one in told] == [None, str(first), str(third), str(third)]
        rows = [json.loads(one["data"]) for one in told[:3]]
        assert [one["row"]["b.val"] for one in rows] == ["1", "2", "3"]
        assert await events.next() == {"": "alive"}
        [fourth] = await found.publish(ONE + b" ")
        while (one := await events.next()).get("event") != "row":
            assert one == {"": "alive"}
        assert json.loads(one["data"])["document"] == fourth
        await stream.aclose()
        for target, headers in ((f"?since={second}", {}), ("?since=0", {"Last_Event_ID": str(second)})):
            again, rest = await open_events(found.port, f"/subscriptions/{name}/stream{target}", TOKEN, **headers)
            assert json.loads((await rest.next())["data"])["document"] == third
            await again.aclose()


async def test_results_come_by_the_page_in_whole_documents(tmp_path):
    async with http_network(tmp_path) as found:
        name = await subscribed(found)
        numbers = await found.publish(TWO, NONE, ONE, TWO + b" ")
        await complete(found, name, numbers[-1])
        target, rows, pages = f"/subscriptions/{name}/results?limit=1", [], 0
        since = 0
        while since is not None:
            page = (await ask(found.port, f"{target}&since={since}", token=TOKEN)).lines
            rows += [(one["document"], one["row"]["b.val"]) for one in page if "row" in one]
            since, pages = page[-1].get("next"), pages + 1
        first, _, third, fourth = numbers
        assert rows == [(first, "1"), (first, "2"), (third, "3"), (fourth, "1"), (fourth, "2")]
        assert (pages, page[-1]) == (3, {"complete": fourth})
        listed = (await ask(found.port, "/subscriptions", token=TOKEN)).json["subscriptions"]
        assert [one["subscription"] for one in listed] == [name]


async def test_a_cursor_moves_when_the_client_says_that_it_is_done(tmp_path):
    async with http_network(tmp_path) as found:
        name = await subscribed(found)
        first, second = await found.publish(TWO, ONE)
        await complete(found, name, second)
        base = f"/subscriptions/{name}"

        async def begins(target, **headers):
            stream, events = await open_events(found.port, f"{base}/stream{target}", TOKEN, **headers)
            told = json.loads((await events.next())["data"])
            await stream.aclose()
            return told.get("document") or told

        async def cursor():
            [one] = (await ask(found.port, f"{base}/cursors", token=TOKEN)).json["cursors"]
            return one["upto"]

        assert await begins("?cursor=c") == first
        assert await begins("?cursor=c") == first  # sent is not done
        put = {"method": "PUT", "token": TOKEN}
        assert (await ask(found.port, f"{base}/cursors/c?upto={first}", **put)).status == 200
        assert await begins("?cursor=c") == second
        assert await begins("?cursor=c", Last_Event_ID=str(second)) == {"complete": second}
        assert await cursor() == second
        assert (await ask(found.port, f"{base}/results?cursor=c", token=TOKEN)).lines == [{"complete": second}]
        for target, status in (("c?upto=999999", 400), ("c", 400), ("d?upto=999999", 400), ("a%20b?upto=1", 400)):
            assert (await ask(found.port, f"{base}/cursors/{target}", **put)).status == status
        gone = {"method": "DELETE", "token": TOKEN}
        assert (await ask(found.port, f"{base}/cursors/c", **gone)).status == 200
        assert await begins("?cursor=c") == first
        assert (await ask(found.port, f"{base}/cursors/c", **gone)).status == 200
        for target, status in (("c", 404), ("d", 404), ("a%20b", 400)):
            assert (await ask(found.port, f"{base}/cursors/{target}", **gone)).status == status


async def test_saying_how_far_one_is_makes_a_cursor(tmp_path):
    async with http_network(tmp_path) as found:
        name = await subscribed(found)
        first, second = await found.publish(TWO, ONE)
        await complete(found, name, second)
        base = f"/subscriptions/{name}"
        told = await ask(found.port, f"{base}/cursors/new?upto={first}", method="PUT", token=TOKEN)
        assert (told.status, told.json) == (200, {"cursor": "new", "upto": first})
        page = (await ask(found.port, f"{base}/results?cursor=new", token=TOKEN)).lines
        assert [one["document"] for one in page if "row" in one] == [second]


async def test_what_a_query_asks_for_in_vain_is_refused(tmp_path):
    async with http_network(tmp_path) as found:
        name = await subscribed(found)
        base = f"/subscriptions/{name}"
        for target in ("results?limit=0", "results?sinse=3", "stream?limit=3", "cursors?x=1", "results?since=-1"):
            assert (await ask(found.port, f"{base}/{target}", token=TOKEN)).status == 400, target
        told = await ask(found.port, f"{base}/results?sinse=3", token=TOKEN)
        assert told.json["error"] == "?sinse= means nothing here; known: ?since=, ?limit=, ?cursor="
        assert (await ask(found.port, "/healthz?probe=7")).status == 200


async def test_the_stream_of_a_subscription_that_has_ended_ends_and_need_not_be_opened_again(tmp_path):
    async with http_network(tmp_path) as found:
        name = await subscribed(found)
        [number] = await found.publish(ONE)
        await complete(found, name, number)
        end = (await found.peer.unsubscribe(name))["end"]
        target = f"/subscriptions/{name}/stream"
        whole = await ask(found.port, target, token=TOKEN)
        assert whole.body.endswith(f'id: {end}\ndata: {{"complete": {end}}}\n\n'.encode())
        again = await ask(found.port, target, token=TOKEN, Last_Event_ID=str(end))
        assert (again.status, again.body, "content-length" in again.headers) == (204, b"", False)


async def test_trouble_with_the_disk_is_ill_health(tmp_path):
    async with http_network(tmp_path) as found:
        found.peer._committer.trouble = "the disk is full"
        answer = await ask(found.port, "/healthz")
        assert (answer.status, answer.json["trouble"]) == (503, "the disk is full")


async def test_an_unknown_subscription_or_a_wrong_number_is_refused(tmp_path):
    async with http_network(tmp_path) as found:
        name = await subscribed(found)
        for target, status in (
            ("/subscriptions/s-0/stream", 404), ("/subscriptions/s-0/results", 404),
            (f"/subscriptions/{name}/results?since=x", 400), (f"/subscriptions/{name}/results?since=-1", 400),
            (f"/subscriptions/{name}/stream?since={'9' * 30}", 400),
            (f"/subscriptions/{name}/stream?since=%D9%A3", 400),
        ):  # fmt: skip
            assert (await ask(found.port, target, token=TOKEN)).status == status, target


SAMPLE = re.compile(r'([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z]+="(?:[^"\\\n]|\\["\\n])*")*\})? (\S+)')


async def test_metrics_can_be_read_and_count_what_happened(tmp_path):
    async with http_network(tmp_path) as found:
        name = await subscribed(found)
        numbers = await found.publish(ONE, TWO)
        await complete(found, name, numbers[-1])
        found.source.links.refused |= {f'"evil" \\ reason\n{n}': n + 1 for n in range(100)}
        read = {}
        for port in (found.port, found.source_port):
            answer = await ask(port, "/metrics")
            assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert answer.body.endswith(b"\n")
            for line in answer.body.decode().splitlines():
                assert line.startswith(("# HELP ", "# TYPE ")) or SAMPLE.fullmatch(line), line
            samples = [SAMPLE.fullmatch(line) for line in answer.body.decode().splitlines() if line[0] != "#"]
            read[port] = {one[1] + (one[2] or ""): float(one[3]) for one in samples}
            assert read[port]["process_resident_memory_bytes"] > 1 << 20
            assert read[port]["distributary_database_bytes"] > 0
        peer, source = read[found.port], read[found.source_port]
        assert peer[f'distributary_subscription_committed_number{{subscription="{name}"}}'] == numbers[-1]
        assert source["distributary_log_last_number"] == numbers[-1]
        assert source["distributary_documents_numbered_total"] == 2
        assert peer["distributary_received_bytes_total"] > 0
        assert source["distributary_feeds_served"] == 1
        refusals = [key for key in source if key.startswith("distributary_refusals_total")]
        assert len(refusals) == 21  # the most frequent, and the sum of the others
        assert (await ask(found.port, "/healthz")).json == {"ok": True, "site": "p1", "role": "peer"}


def test_the_token_is_made_once_and_only_its_owner_can_read_it(tmp_path):
    token = token_in(tmp_path)
    path = tmp_path / TOKEN_FILE
    assert (path.stat().st_mode & 0o777, len(token) >= 32) == (0o600, True)
    path.chmod(0o644)
    assert token_in(tmp_path) == token
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("short\n")
    with pytest.raises(CommandError, match="no token"):
        token_in(tmp_path)
