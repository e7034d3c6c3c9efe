"""What the daemons offer over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from overlay.identity import Role
from peer.http.exchange import Response, as_json
from peer.http.exposition import CONTENT_TYPE, exposition
from peer.http.measures import peer_families, source_families
from peer.http.publishing import publishing
from peer.http.routes import Route, Routes
from peer.http.serving import Server
from peer.http.subscriptions import subscription_routes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from peer.daemon.peer_daemon import PeerDaemon
    from peer.daemon.source_daemon import SourceDaemon
    from peer.http.exchange import Request
    from peer.http.exposition import Family
    from peer.http.limits import HttpLimits
    from peer.http.routes import Handler

PUBLISH: Final = "/publish"


def peer_server(daemon: PeerDaemon, home: Path, token: str, limits: HttpLimits) -> Server:
    """Return what a peer offers."""

    def is_publisher() -> bool:
        return Role.PUBLISHER in daemon.credential.member.roles

    server = Server(Routes([]), token, limits)
    server.routes = Routes([
        *_about(daemon.site, "peer", lambda: peer_families(daemon, home / "results.sqlite", server),
                lambda: daemon.status()["storage"]),
        _publish_route(publishing(daemon.publish, is_allowed=is_publisher)),
        *subscription_routes(daemon, limits.beat_s),
    ])  # fmt: skip
    return server


def source_server(daemon: SourceDaemon, home: Path, token: str, limits: HttpLimits) -> Server:
    """Return what the source offers."""

    async def publish(name: str, key: str, body: bytes) -> object:
        return await daemon.publish(daemon.site, name, key, body)

    server = Server(Routes([]), token, limits)
    server.routes = Routes([
        *_about(daemon.site, "source", lambda: source_families(daemon, home / "source.sqlite", server),
                lambda: daemon.status()["storage"]),
        _publish_route(publishing(publish, is_allowed=lambda: True)),
    ])  # fmt: skip
    return server


def _publish_route(handler: Handler) -> Route:
    return Route("POST", PUBLISH, handler, takes_body=True, fields=("name",))


def _about(
    site: str, role: str, families: Callable[[], Sequence[Family]], trouble: Callable[[], str]
) -> list[Route]:
    async def metrics(_: Request, __: tuple[str, ...]) -> Response:
        return Response(200, exposition(families()).encode(), (("Content-Type", CONTENT_TYPE),))

    async def healthz(_: Request, __: tuple[str, ...]) -> Response:
        problem = trouble()
        told = {"ok": not problem, "site": site, "role": role}
        return as_json(told | {"trouble": problem}, 503) if problem else as_json(told)

    found: list[tuple[str, Handler]] = [("/metrics", metrics), ("/healthz", healthz)]
    return [Route("GET", path, handler, is_open=True) for path, handler in found]
