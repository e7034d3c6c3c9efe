"""The supervisor of a connection: whatever goes wrong on a connection ends it, and nothing else.

What other machines say is checked where it is read. Should somebody find what was not thought of, it costs them
their connection, and the log says where it happened.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_LOG: Final = logging.getLogger("distributary.links")


@contextmanager
def supervised(
    refuse: Callable[[str], None], end: Callable[[], None] = lambda: None, *, site: str = "unknown"
) -> Iterator[None]:
    """Run what concerns one connection. What nobody expected is logged, counted by ``refuse``, and ends the
    connection; being cancelled passes. To be used within a task, not around a nursery, whose errors may come
    together with its being cancelled."""
    try:
        yield
    except Exception as exc:  # the supervisor: the daemon goes on
        _LOG.exception("a connection failed", extra={"site": site})
        refuse(f"it failed here: {type(exc).__name__}")
        end()
