"""Webhooks against a real receiver that fails, hangs, redirects, and returns."""

import hashlib
import hmac
import json
import socket
import ssl
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import trio
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from peer.cli import main
from peer.daemon.control import serve_control
from peer.daemon.controls import peer_controls
from peer.daemon.questions import NoAnswer
from peer.webhooks.batching import MOST_ENTRIES
from peer.webhooks.delivering import Webhooks
from peer.webhooks.hooks import FILE, MOST_HOOKS
from peer.webhooks.waiting import HookTimes
from tests.peer.daemon.network import live_network, rows
from tests.peer.http.client import until
from tests.peer.webhooks.receiver import receiving
from xmlmatch import Pattern

TIMES = HookTimes(first_s=0.01, longest_s=0.05)


class Setting:
    """A peer with a subscription and quick webhooks."""

    def __init__(self, network, peer, name, webhooks):
        self.network, self.peer, self.name, self.webhooks = network, peer, name, webhooks

    async def publish(self, *values):
        """Publish a document with a row per value, and return its number once it is here."""
        body = ("<r>" + "".join(f"<b>{value}</b>" for value in values) + "</r>").encode()
        key = hashlib.sha256(body).hexdigest()
        number = (await self.network.source.publish("source", "d", key, body))["number"]
        await rows(self.peer, self.name, number)
        return number

    async def state(self, wanted):
        """Wait for a webhook's state."""
        await until(lambda: self.webhooks.standing()[0]["state"] == wanted)
        return self.webhooks.standing()[0]


@asynccontextmanager
async def setting(folder, times=TIMES):
    async with live_network(folder) as network, trio.open_nursery() as nursery:
        peer = await network.start_peer("p1")
        await peer.connected.wait()
        name = (await peer.subscribe(Pattern.parse("//b{val}")))["subscription"]
        webhooks = Webhooks(folder / "p1", peer.reading, peer.cursors, times)
        nursery.start_soon(webhooks.run)
        yield Setting(network, peer, name, webhooks)
        nursery.cancel_scope.cancel()


def values(receiver):
    return [one["row"]["b.val"] for one in receiver.taken]


def distinct(receiver):
    """The same without what came again: an answer may have been too late."""
    return list(dict.fromkeys(values(receiver)))


async def test_results_are_posted_in_order_signed_and_with_their_numbers(tmp_path):
    async with setting(tmp_path) as found, receiving() as receiver:
        first = await found.publish("1", "2")
        told = await found.webhooks.add(found.name, receiver.url)
        second = await found.publish("3")
        await until(lambda: len(receiver.taken) == 3)
        assert values(receiver) == ["1", "2", "3"]
        assert [one["document"] for one in receiver.taken] == [first, first, second]
        line, headers, body = receiver.got[0]
        assert line == "POST /in?k=1 HTTP/1.1"
        assert headers["Distributary-Subscription"] == found.name
        assert headers["Distributary-Documents"].startswith(f"{first}-")
        time, mac = (part.partition("=")[2] for part in headers["Distributary-Signature"].split(","))
        wanted = hmac.new(told["secret"].encode(), f"{time}.".encode() + body, hashlib.sha256).hexdigest()
        assert mac == wanted
        assert json.loads(receiver.got[-1][2])["complete"] >= second


async def test_what_is_not_taken_is_posted_again_until_it_is(tmp_path):
    async with setting(tmp_path) as found, receiving() as receiver, receiving() as other:
        await found.webhooks.add(found.name, receiver.url)
        await found.webhooks.add(found.name, other.url)
        for said in (500, 302, 404, "close", "garbage"):
            await fails_and_returns(found, receiver, other, said)
        assert values(receiver) == values(other)


async def test_a_receiver_that_hangs_is_given_up_and_tried_again(tmp_path):
    async with setting(tmp_path, replace(TIMES, patience_s=0.5)) as found, receiving() as receiver:
        async with receiving() as other:
            await found.webhooks.add(found.name, receiver.url)
            await found.webhooks.add(found.name, other.url)
            await fails_and_returns(found, receiver, other, "hang")
        assert distinct(receiver) == ["hang-1", "hang-2"]


async def fails_and_returns(found, receiver, other, said):
    """Let a receiver fail for a while beside another that does not, and then take what it is owed."""
    receiver.says, before, had = said, len(receiver.got), len(receiver.taken)
    await found.publish(f"{said}-1")
    await until(lambda: len(receiver.got) >= before + 3)
    standing = found.webhooks.standing()[0]
    assert standing["failures"] >= 2
    assert standing["problem"]
    # Nobody else waits, and the failing one has moved by nothing.
    await found.publish(f"{said}-2")
    await until(lambda: distinct(other)[-2:] == [f"{said}-1", f"{said}-2"])
    assert len(receiver.taken) == had
    keys = {headers["Idempotency-Key"] for _, headers, _ in receiver.got[before : before + 3]}
    assert len(keys) == 1  # the same batch is the same again
    receiver.says = 200
    await until(lambda: distinct(receiver)[-2:] == [f"{said}-1", f"{said}-2"])
    assert (await found.state("idle"))["problem"] == ""


async def test_a_webhook_goes_on_behind_its_cursor_after_a_restart(tmp_path):
    async with receiving() as receiver:
        async with setting(tmp_path) as found:
            await found.webhooks.add(found.name, receiver.url)
            last = await found.publish("1")
            await until(lambda: (found.webhooks.standing()[0]["upto"] or 0) >= last)
            receiver.says = 500
            await found.publish("2")
            await until(lambda: len(receiver.got) >= 2)
            mode = (tmp_path / "p1" / FILE).stat().st_mode & 0o777
            before = found.webhooks
            receiver.says = 200
            again = Webhooks(tmp_path / "p1", found.peer.reading, found.peer.cursors, TIMES)
            for one in before._running.values():
                one.scope.cancel()
            receiver.taken.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(again.run)
                await until(lambda: "2" in values(receiver))
                nursery.cancel_scope.cancel()
        assert (values(receiver), mode) == (["2"], 0o600)


async def test_a_document_with_very_many_rows_comes_in_several_posts(tmp_path):
    async with setting(tmp_path) as found, receiving() as receiver:
        wanted = [str(n) for n in range(2 * MOST_ENTRIES + 10)]
        number = await found.publish(*wanted)
        await found.webhooks.add(found.name, receiver.url)
        await until(lambda: len(receiver.taken) == len(wanted))
        assert values(receiver) == wanted
        assert [len(json.loads(body)["entries"]) for _, _, body in receiver.got] == [1000, 1000, 10]
        await until(lambda: found.webhooks.standing()[0]["upto"] >= number)


async def test_a_webhook_that_was_removed_posts_no_more_and_holds_nothing(tmp_path):
    async with setting(tmp_path) as found, receiving() as receiver:
        receiver.says = 500
        told = await found.webhooks.add(found.name, receiver.url)
        await found.publish("1")
        await until(lambda: receiver.got)
        await found.webhooks.remove(told["webhook"])
        await found.publish("2")
        await until(lambda: receiver.open == 0)
        assert not any(b'"2"' in body for _, _, body in receiver.got)
        assert found.webhooks.standing() == []
        assert await found.peer.cursors.listed(found.name) == []
        with pytest.raises(NoAnswer, match="no webhook"):
            await found.webhooks.remove(told["webhook"])


async def test_a_webhook_ends_when_its_subscription_has_and_all_is_delivered(tmp_path):
    async with setting(tmp_path) as found, receiving() as receiver:
        receiver.says = 500
        await found.webhooks.add(found.name, receiver.url)
        await found.publish("1")
        await found.peer.unsubscribe(found.name)
        await until(lambda: receiver.got)
        receiver.says = 200
        assert (await found.state("ended"))["problem"] == ""
        assert values(receiver) == ["1"]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("ftp://h/", "expected http"), ("http:///x", "expected http"), ("http://u:p@h/", "neither a user"),
        ("http://h/#f", "neither a user"), ("http://h/a b", "printable"), ("http://h\r\nX: y/", "printable"),
        ("http://h:99999/", "ut of range"), ("http://h/" + "x" * 3000, "2000"),
    ],
)  # fmt: skip
async def test_a_url_that_cannot_be_is_refused(tmp_path, url, said):
    webhooks = Webhooks(tmp_path, None, None)
    with pytest.raises(NoAnswer, match=said):
        await webhooks.add("s", url)


async def test_there_is_a_limit_and_nothing_is_added_twice(tmp_path):
    async with setting(tmp_path) as found:
        for number in range(MOST_HOOKS):
            await found.webhooks.add(found.name, f"http://127.0.0.1:1/{number}")
        for url, said in (("http://127.0.0.1:1/0", "already"), ("http://127.0.0.1:1/new", "the most")):
            with pytest.raises(NoAnswer, match=said):
                await found.webhooks.add(found.name, url)
        with pytest.raises(NoAnswer, match="16 characters"):
            await found.webhooks.add(found.name, "http://127.0.0.1:1/new", secret="short")


def certificate(folder):
    """Make a certificate for localhost that signs itself; return a server's context and the certificate's file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name, now = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")]), datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = folder / "certificate.pem"
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    secret = folder / "key.pem"
    secret.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ))  # fmt: skip
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pem, secret)
    return context, pem


async def test_https_is_verified(tmp_path, monkeypatch):
    context, pem = certificate(tmp_path)
    async with setting(tmp_path / "net") as found, receiving(context) as receiver:
        await found.webhooks.add(found.name, f"https://localhost:{receiver.port}/")
        await found.publish("1")
        standing = await found.state("waiting")
        assert "certificate verify failed" in standing["problem"]
        assert receiver.got == []
        monkeypatch.setenv("SSL_CERT_FILE", str(pem))
        await until(lambda: values(receiver) == ["1"])
        await found.state("idle")


async def test_the_commands_add_list_and_remove(tmp_path, capsys):
    async with setting(tmp_path) as found, receiving() as receiver, trio.open_nursery() as nursery:
        await nursery.start(serve_control, tmp_path / "p1", peer_controls(found.peer))

        async def command(*words):
            status = await trio.to_thread.run_sync(main, [*words, "--home", str(tmp_path / "p1")])
            return status, capsys.readouterr().out

        assert (await command("webhook", "add", "s-0", receiver.url))[0] == 2
        status, out = await command("webhook", "add", found.name, receiver.url, "--json")
        added = json.loads(out)
        await found.publish("1")
        await until(lambda: values(receiver) == ["1"])
        status, out = await command("webhook", "list", "--json")
        listed = json.loads(out)
        assert (status, listed["webhook"], "secret" in listed) == (0, added["webhook"], False)
        assert added["webhook"] in (await command("status"))[1]
        assert await command("webhook", "remove", added["webhook"]) == (0, f"{added['webhook']} has ended.\n")
        assert (await command("webhook", "list"))[1] == ""
        nursery.cancel_scope.cancel()


async def test_a_receiver_that_is_not_there_is_told_in_plain_words(tmp_path):
    async with setting(tmp_path) as found:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # and nobody listens
            await found.webhooks.add(found.name, f"http://127.0.0.1:{taken.getsockname()[1]}/")
            await found.publish("1")
            await until(lambda: found.webhooks.standing()[0]["problem"])
            assert found.webhooks.standing()[0]["problem"] == "connection refused"
