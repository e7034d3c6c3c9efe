"""Measures what fan-out this machine bears: results of a typical document cut, framed, encrypted and sent.

The receivers are sockets of this machine behind TLS with certificates of a network made for the purpose. What one
feed costs per document is the processor time of the sending thread alone: receivers have their own. From it
follows how many feeds fit into a share of one core at a rate of documents; a daemon does other work too.
"""

from __future__ import annotations

import socket
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from overlay.identity import Credential, create_network
from overlay.wire.frames import Batch
from overlay.wire.outbox import Outbox
from peer.hosting.results import Joining, cut_results, from_document, read_cut_untrusted, whole_link
from xmlmatch import Document, Matcher, Pattern

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from rewriting.execution import Link

RECEIVERS: Final = 4
MOST_FEEDS: Final = 10_000
_ITEMS: Final = 60
_AT_ONCE: Final = 512 << 10
_VIEW: Final = "//item{cont}[name{val}][location{val}]"
_QUERIES: Final = (
    _VIEW, "//item{cont}[name][location='Poland']", "//item[name{val}][location{val}]",
    "//item{cont}[name{val}][location]", "//item[name{val}][location='Kenya']", "//item{cont}[name][location]",
)  # fmt: skip
"""The first is all of it, which travels as it is stored."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one feed costs for one document (``cpu_ms``), what travels (``batch_bytes``), and how fast it left."""

    seconds: float
    batches: int
    batch_bytes: int
    bytes_per_second: int
    cpu_ms: float
    cut_ms: float

    def capacity(self, rate: float, share: float, uplink_mbit: float | None) -> int:
        """Return how many feeds fit into a share of a core, and into the uplink, at so many documents per second.

        >>> Measured(1.0, 1000, 10_000, 10**7, 1.0, 0.5).capacity(5, 0.5, None)
        100
        >>> Measured(1.0, 1000, 10_000, 10**7, 1.0, 0.5).capacity(5, 0.5, 20)
        25
        """
        fits = share * 1000 / (self.cpu_ms * rate)
        if uplink_mbit is not None:
            fits = min(fits, share * uplink_mbit * 1e6 / (8 * self.batch_bytes * rate))
        return max(min(int(fits), MOST_FEEDS), 0)

    def told(self) -> dict[str, Any]:
        """Return the figures by name, unrounded: from them follows the capacity, to the digit."""
        return asdict(self)


def calibrate(seconds: float, step: Callable[[float], None]) -> Measured:
    """Measure for some seconds; ``step`` hears how many have gone since it last did."""
    with tempfile.TemporaryDirectory(prefix="distributary-calibrate-") as folder, ExitStack() as stack:
        create_network(Path(folder, "home"), "calibration", datetime.now(UTC))
        credential = Credential.load(Path(folder, "home", "identity"))
        senders = [_link(credential, stack) for _ in range(RECEIVERS)]
        return _measure(senders, seconds, step)


def _measure(senders: list[ssl.SSLSocket], seconds: float, step: Callable[[float], None]) -> Measured:
    whole, links = _results()
    for link in links:
        _cut(link, whole)  # compiled, and found in caches
    batches = sent = 0
    cutting = 0.0
    began = last = time.monotonic()
    cpu = time.thread_time()
    for number, link in _turns(links):
        before = time.thread_time()
        data = _cut(link, whole)
        cutting += time.thread_time() - before
        outbox = Outbox()
        outbox.put_feed(Batch(number, number, number + 1, "calibration.xml", data, False))
        while frames := outbox.take(_AT_ONCE):
            senders[number % len(senders)].sendall(frames)
            sent += len(frames)
        batches += 1
        now = time.monotonic()
        if now - last >= 0.05:
            step(now - last)
            last = now
            if now - began >= seconds:
                break
    spent, took = time.thread_time() - cpu, time.monotonic() - began
    return Measured(
        took, batches, sent // batches, int(sent / took), 1000 * spent / batches, 1000 * cutting / batches
    )


def _turns(links: list[Link | None]) -> Iterator[tuple[int, Link | None]]:
    number = 0
    while True:
        yield number, links[number % len(links)]
        number += 1


def _results() -> tuple[bytes, list[Link | None]]:
    """Return the stored results of a typical subscription, and what its feeds ask of them."""
    view = Pattern.parse(_VIEW)
    document = Document.parse(_document())
    whole = from_document(whole_link(view), Matcher([view]).match(document), 0, document)
    queries = [Pattern.parse(text) for text in _QUERIES]
    cuts = [Joining(query, (view,)).cuts()[0] for query in queries]
    return whole, [
        read_cut_untrusted(view, query, cut) if cut else None for query, cut in zip(queries, cuts, strict=True)
    ]


def _cut(link: Link | None, whole: bytes) -> bytes:
    return whole if link is None else cut_results(link, whole)


def _document() -> bytes:
    """Make a document of about 30 KB, as auctions have it."""
    items = [
        f"<item id='item{i}'{' featured=' + repr('yes') if i % 5 == 0 else ''}>"
        f"<location>{('Poland', 'Kenya', 'Peru')[i % 3]}</location>"
        f"<quantity>{i % 7}</quantity><name>thing {i} of many</name>"
        f"<description><text>{'what is said of it in some words ' * 8}</text></description></item>"
        for i in range(_ITEMS)
    ]
    return f"<site><regions>{''.join(items)}</regions></site>".encode()


def _link(credential: Credential, stack: ExitStack) -> ssl.SSLSocket:
    """Connect two sockets of this machine by TLS; a thread reads all that comes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        plain = stack.enter_context(socket.create_connection(listening.getsockname()))
        accepted, _ = listening.accept()
    stack.enter_context(accepted)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    thread = threading.Thread(target=_drain, args=(accepted, credential.server_context()), daemon=True)
    thread.start()
    stack.callback(thread.join)
    sending = credential.client_context().wrap_socket(plain)
    stack.callback(sending.close)
    return sending


def _drain(plain: socket.socket, context: ssl.SSLContext) -> None:
    """Read until the other side closes."""
    with context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=True) as stream:
        while stream.recv(1 << 16):
            pass
