"""Subscriptions over HTTP: the list, results by the page, and a stream that lasts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from peer.daemon.cursors import check_cursor
from peer.daemon.questions import AskAgain, NoAnswer
from peer.daemon.readers import readers_of
from peer.http.events import CONTENT_TYPE, events, lines
from peer.http.exchange import Refusal, Response, as_json, number_of
from peer.http.routes import Route

if TYPE_CHECKING:
    from collections.abc import Iterator

    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.reading import Reach
    from peer.http.exchange import Request

_PAGE: Final = 1_000
_LARGEST_PAGE: Final = 100_000


class SubscriptionPages:
    """What a peer's users read."""

    def __init__(self, daemon: PeerDaemon, beat_s: float) -> None:
        self._daemon, self._beat_s = daemon, beat_s

    async def list(self, _: Request, __: tuple[str, ...]) -> Response:
        """List the subscriptions and how they stand."""
        status = self._daemon.status()
        return as_json({"subscriptions": status["subscriptions"], "spaces": status["spaces"]})

    async def stream(self, request: Request, parts: tuple[str, ...]) -> Response:
        """Send what there is after a document, and what comes, for as long as the client stays."""
        since, reach = await self._since(request, parts[0]), self._known(parts[0])
        if reach.end is not None and min(since, reach.upto) >= reach.end:
            return Response(204)  # it has ended, and the client has all of it: it need not come again
        reading = readers_of(self._daemon, parts[0]).reading
        entries = reading.entries(parts[0], since, follow=True, beat_s=self._beat_s)
        return Response(200, headers=(("Content-Type", CONTENT_TYPE),), parts=events(entries))

    async def results(self, request: Request, parts: tuple[str, ...]) -> Response:
        """Send a page of what there is after a document."""
        since, limit = await self._since(request, parts[0]), request.number("limit")
        if limit == 0:
            raise Refusal(400, "?limit=0: a page has 1 line at least")
        most = min(limit or _PAGE, _LARGEST_PAGE)
        entries = readers_of(self._daemon, parts[0]).reading.entries(parts[0], since, follow=False)
        return Response(200, headers=(("Content-Type", "application/x-ndjson"),), parts=lines(entries, most))

    async def cursors(self, _: Request, parts: tuple[str, ...]) -> Response:
        """List the cursors of a subscription."""
        self._known(parts[0])
        return as_json({"cursors": await readers_of(self._daemon, parts[0]).cursors.listed(parts[0])})

    async def move_cursor(self, request: Request, parts: tuple[str, ...]) -> Response:
        """A client is done up to a document; the first time under a name makes the cursor."""
        reach, upto = self._known(parts[0]), request.number("upto")
        if upto is None:
            raise Refusal(400, "say ?upto=N: everything up to document N is done")
        if upto > reach.upto:
            raise Refusal(400, f"?upto={upto}: {parts[0]} is complete up to {reach.upto} only")
        cursors = readers_of(self._daemon, parts[0]).cursors
        with _refusing():
            await cursors.begin(parts[0], check_cursor(parts[1]), upto)
            await cursors.move(parts[0], parts[1], upto)
        return as_json({"cursor": parts[1], "upto": upto})

    async def remove_cursor(self, _: Request, parts: tuple[str, ...]) -> Response:
        """Forget a cursor."""
        self._known(parts[0])
        with _refusing():
            name = check_cursor(parts[1])
        with _refusing(404):
            await readers_of(self._daemon, parts[0]).cursors.remove(parts[0], name)
        return as_json({"removed": parts[1]})

    async def _since(self, request: Request, name: str) -> int:
        """Return where to begin: what the client saw last, else its cursor, else what it asks for."""
        self._known(name)
        since, cursor = request.number("since") or 0, request.query.get("cursor")
        seen, cursors = request.headers.get("last-event-id"), readers_of(self._daemon, name).cursors
        with _refusing():
            if cursor is not None:
                since = await cursors.begin(name, check_cursor(cursor), since)
            if seen is not None:
                since = number_of("Last-Event-ID: ", seen)
                if cursor is not None:
                    await cursors.move(name, cursor, since)
        return since

    def _known(self, name: str) -> Reach:
        with _refusing(404):
            return readers_of(self._daemon, name).reading.reach(name)


@contextmanager
def _refusing(status: int = 400) -> Iterator[None]:
    try:
        yield
    except AskAgain as exc:
        raise Refusal(503, str(exc), (("Retry-After", "5"),)) from None
    except NoAnswer as exc:
        raise Refusal(status, str(exc)) from None


def subscription_routes(daemon: PeerDaemon, beat_s: float) -> list[Route]:
    """Return what a peer offers of its subscriptions."""
    pages = SubscriptionPages(daemon, beat_s)
    return [
        Route("GET", "/subscriptions", pages.list),
        Route("GET", "/subscriptions/{}/stream", pages.stream, fields=("since", "cursor")),
        Route("GET", "/subscriptions/{}/results", pages.results, fields=("since", "limit", "cursor")),
        Route("GET", "/subscriptions/{}/cursors", pages.cursors),
        Route("PUT", "/subscriptions/{}/cursors/{}", pages.move_cursor, fields=("upto",)),
        Route("DELETE", "/subscriptions/{}/cursors/{}", pages.remove_cursor),
    ]
