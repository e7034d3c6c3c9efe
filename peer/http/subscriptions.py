"""Subscriptions over HTTP: the list, results by the page, and a stream that lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from peer.daemon.questions import NoAnswer
from peer.http.events import CONTENT_TYPE, events, lines
from peer.http.exchange import Refusal, Response, as_json, number_of
from peer.http.routes import Route

if TYPE_CHECKING:
    from peer.daemon.peer_daemon import PeerDaemon
    from peer.http.exchange import Request

_PAGE: Final = 1_000
_LARGEST_PAGE: Final = 100_000


class SubscriptionPages:
    """What a peer's users read."""

    def __init__(self, daemon: PeerDaemon, beat_s: float) -> None:
        self._daemon, self._beat_s = daemon, beat_s

    async def list(self, _: Request, __: tuple[str, ...]) -> Response:
        """List the subscriptions and how they stand."""
        return as_json({"subscriptions": self._daemon.status()["subscriptions"]})

    async def stream(self, request: Request, parts: tuple[str, ...]) -> Response:
        """Send what there is after a document, and what comes, for as long as the client stays."""
        since = await self._since(request, parts[0])
        entries = self._daemon.reading.entries(parts[0], since, follow=True, beat_s=self._beat_s)
        return Response(200, headers=(("Content-Type", CONTENT_TYPE),), parts=events(entries))

    async def results(self, request: Request, parts: tuple[str, ...]) -> Response:
        """Send a page of what there is after a document."""
        since, limit = await self._since(request, parts[0]), request.number("limit")
        most = min(_PAGE if limit is None else max(limit, 1), _LARGEST_PAGE)
        entries = self._daemon.reading.entries(parts[0], since, follow=False)
        return Response(200, headers=(("Content-Type", "application/x-ndjson"),), parts=lines(entries, most))

    async def _since(self, request: Request, name: str) -> int:
        """Return where to begin: what the client saw last, else what it asks for, else the beginning."""
        self._known(name)
        if "last-event-id" in request.headers:
            return number_of("Last-Event-ID: ", request.headers["last-event-id"])
        return request.number("since") or 0

    def _known(self, name: str) -> None:
        try:
            self._daemon.reading.known(name)
        except NoAnswer as exc:
            raise Refusal(404, str(exc)) from None


def subscription_routes(daemon: PeerDaemon, beat_s: float) -> list[Route]:
    """Return what a peer offers of its subscriptions."""
    pages = SubscriptionPages(daemon, beat_s)
    return [
        Route("GET", "/subscriptions", pages.list),
        Route("GET", "/subscriptions/{}/stream", pages.stream),
        Route("GET", "/subscriptions/{}/results", pages.results),
    ]
