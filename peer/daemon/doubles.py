"""Machines that use one name: a home was copied, and both daemons run.

Each takes the other's connection over, for ever. A daemon that was started again is new; one that had been taken
over and comes back means that there are two.
"""

from __future__ import annotations

import logging
from typing import Final

_LOG: Final = logging.getLogger("distributary.links")
_EVERY_S: Final = 60.0
_SHOWN_S: Final = 120.0


class Doubles:
    """Who is there twice, by the numbers that processes draw.

    >>> found = Doubles()
    >>> for now, process in enumerate((1, 2, 2, 3)):  # started anew, twice
    ...     found.came("paris", process, float(now))
    >>> found.sites(4.0)
    []
    >>> found.came("paris", 2, 5.0)
    >>> found.sites(6.0), found.sites(200.0)
    (['paris'], [])
    """

    def __init__(self) -> None:
        self._latest: dict[str, tuple[int, int | None]] = {}
        self._noticed: dict[str, float] = {}
        self._logged: dict[str, float] = {}

    def came(self, site: str, process: int, now: float) -> None:
        """A machine has connected; ``process``: what its daemon drew when it started."""
        last, before = self._latest.get(site, (process, None))
        if process == last:
            self._latest[site] = last, before
            return
        self._latest[site] = process, last
        if process != before:
            return
        self._noticed[site] = now
        if now - self._logged.get(site, -_EVERY_S) >= _EVERY_S:
            self._logged[site] = now
            _LOG.warning("two machines use one name; stop one, and invite it under another", extra={"site": site})

    def sites(self, now: float) -> list[str]:
        """Return who was there twice in the last two minutes."""
        return sorted(site for site, at in self._noticed.items() if now - at < _SHOWN_S)
