"""Publishing by POST: the body is the document, the answer its number once it is durable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from peer.daemon.questions import AskAgain, NoAnswer
from peer.http.exchange import Refusal, as_json
from peer.publication import key_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from peer.http.exchange import Request, Response
    from peer.http.routes import Handler

_LONGEST: Final = 1000


def publishing(publish: Callable[[str, str, bytes], Awaitable[Any]], *, is_allowed: Callable[[], bool]) -> Handler:
    """Return the handler; ``publish`` takes a name, a key and a body."""

    async def handler(request: Request, _: tuple[str, ...]) -> Response:
        if not is_allowed():
            raise Refusal(403, "this machine is no publisher; invite it with --role publisher")
        if not request.body:
            raise Refusal(400, "the body is empty; send an XML document")
        name = request.query.get("name", "")
        key = request.headers.get("idempotency-key", "") or key_of(name, request.body)
        if max(len(name), len(key)) > _LONGEST:
            raise Refusal(400, f"the name and the Idempotency-Key may have {_LONGEST} characters at most")
        try:
            told = await publish(name, key, request.body)
        except AskAgain as exc:
            raise Refusal(503, f"{exc}; the same request can be sent again", (("Retry-After", "5"),)) from None
        except NoAnswer as exc:
            raise Refusal(422, str(exc)) from None
        return as_json({"document": name, **told}, 201 if told["is_new"] else 200)

    return handler
