"""Which handler a request finds: by its path, then by its method."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from peer.http.exchange import Refusal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from peer.http.exchange import Request, Response

    Handler: TypeAlias = Callable[[Request, tuple[str, ...]], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """``{}`` in a path stands for anything but a slash. ``is_open``: no token is asked for. ``fields``: what its
    query may have; who watches an open one may add anything."""

    method: str
    path: str
    handler: Handler
    is_open: bool = False
    takes_body: bool = False
    fields: tuple[str, ...] = ()
    _pattern: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        pattern = "([^/]+)".join(re.escape(part) for part in self.path.split("{}"))
        object.__setattr__(self, "_pattern", re.compile(pattern))

    def parts(self, path: str) -> tuple[str, ...] | None:
        """Return what stands for the ``{}`` in a path, None if it is another one."""
        found = self._pattern.fullmatch(path)
        return None if found is None else found.groups()

    def check(self, query: Iterable[str]) -> None:
        """Refuse a query that has a field which means nothing here: one that is mistyped would be overlooked."""
        for name in query:
            if name not in self.fields and not self.is_open:
                known = ", ".join(f"?{one}=" for one in self.fields) or "none"
                raise Refusal(400, f"?{name[:50]}= means nothing here; known: {known}")


class Routes:
    """All that is offered."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._routes = tuple(routes)

    def is_open(self, path: str) -> bool:
        """Whether nobody needs a token for a path."""
        return any(route.is_open and route.parts(path) is not None for route in self._routes)

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]]:
        """Return the route and the parts of a path, or refuse. ``HEAD`` finds what ``GET`` does: it is answered
        likewise, without the body."""
        found = [(route, parts) for route in self._routes if (parts := route.parts(path)) is not None]
        if not found:
            raise Refusal(404, "nothing is here; docs/http.md lists what is")
        for route, parts in found:
            if route.method == ("GET" if method == "HEAD" else method):
                return route, parts
        methods = {route.method for route, _ in found}
        allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        raise Refusal(405, f"{method[:20]} is not possible here, only {allowed}", (("Allow", allowed),))
