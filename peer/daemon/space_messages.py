"""What subscriptions in spaces have received, as users read it: in order, with the gaps where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import trio

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from peer.storage.space_store import SpaceStore

_PAGE: Final = 1000


async def read_messages(
    store: SpaceStore, name: str, after: int, upto: int, gaps: list[tuple[int, int]]
) -> AsyncGenerator[dict[str, Any], None]:
    """Yield the messages of a subscription in (after, upto], in order, and each gap before what lies in it."""
    gaps = sorted((max(begin, after), end) for begin, end in gaps)
    while True:
        page = await trio.to_thread.run_sync(store.messages, name, after, upto, _PAGE)
        for number, attributes in page:
            while gaps and gaps[0][0] < number:
                yield {"gap": list(gaps.pop(0))}
            yield {"message": number, "attributes": attributes}
        if len(page) < _PAGE:
            break
        after = page[-1][0]
    for gap in gaps:
        yield {"gap": list(gap)}
