"""What a peer remembers of its network between two runs, so that it can do without the source for a while.

The list of the revoked: without it, whoever is revoked would be let in again until the source is reached. And
where some other machines are, for the way into the DHT. All this can be learnt again: where it cannot be written,
on a full disk say, that is logged, it counts for this run all the same, and is written when there is room.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

import msgspec

from overlay.identity import Address, BadCredential, IdentityError, RevocationList, read_own_list
from overlay.identity.private_files import read_private, write_private

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from overlay.identity import Root

_LOG: Final = logging.getLogger("distributary.peer")
_LIST: Final = "revocations.bin"
_KNOWN: Final = "known.json"
_MOST_KNOWN: Final = 64


class _Known(msgspec.Struct, frozen=True):
    machines: dict[str, list[str]] = {}
    nodes: list[str] = []


class Remembered:
    """Files in the identity folder of a peer."""

    def __init__(self, folder: Path, root: Root) -> None:
        self._folder, self._root = folder, root
        self._unwritten: dict[str, bytes] = {}
        self._known = self._read_known()

    def revocations(self, otherwise: RevocationList) -> RevocationList:
        """Return the list that was kept; ``BadCredential`` if it is there and is none."""
        path = self._folder / _LIST
        if not path.exists():
            return otherwise
        try:
            return read_own_list(read_private(path, "remove it; the source is asked for it"), self._root)
        except IdentityError as exc:
            raise BadCredential(path, str(exc), "remove it; the source is asked for it") from exc

    def keep_revocations(self, found: RevocationList) -> None:
        """Keep a list, durably if there is room."""
        self._write(_LIST, found.encoded)

    def machines(self) -> dict[str, tuple[Address, ...]]:
        """Return where some machines were, those last that were met last."""
        return {site: tuple(map(Address.parse, texts)) for site, texts in self._known.machines.items()}

    def nodes(self) -> tuple[Address, ...]:
        """Return where some nodes of the DHT were."""
        return tuple(map(Address.parse, self._known.nodes))

    def keep_machines(self, found: Mapping[str, tuple[Address, ...]]) -> None:
        """Keep where some machines are; beyond a limit the oldest are forgotten. Writes only what has changed."""
        known = self._known.machines
        news = {site: [str(one) for one in addresses] for site, addresses in found.items() if addresses}
        if all(known.get(site) == texts for site, texts in news.items()):
            return
        kept = {site: texts for site, texts in known.items() if site not in news} | news
        self._keep(_Known(dict(list(kept.items())[-_MOST_KNOWN:]), self._known.nodes))

    def keep_nodes(self, found: Iterable[Address]) -> None:
        """Keep where some nodes of the DHT are; nothing is forgotten while nobody is known. Called now and then:
        what could not be written before is tried again here."""
        for name, data in list(self._unwritten.items()):
            self._write(name, data)
        news = [str(one) for one in found][:_MOST_KNOWN]
        if news and sorted(news) != sorted(self._known.nodes):
            self._keep(_Known(self._known.machines, news))

    def _keep(self, known: _Known) -> None:
        self._known = known
        self._write(_KNOWN, msgspec.json.encode(known))

    def _write(self, name: str, data: bytes) -> None:
        self._unwritten.pop(name, None)
        try:
            write_private(self._folder / name, data)
        except OSError as exc:
            self._unwritten[name] = data
            _LOG.warning("not remembered", extra={"file": str(self._folder / name), "reason": str(exc)})

    def _read_known(self) -> _Known:
        path = self._folder / _KNOWN
        if not path.exists():
            return _Known()
        try:
            found = msgspec.json.decode(read_private(path, "remove it"), type=_Known)
            for texts in (found.nodes, *found.machines.values()):
                for text in texts:
                    Address.parse(text)
        except (IdentityError, msgspec.MsgspecError, ValueError, RecursionError) as exc:
            _LOG.warning("not remembered", extra={"file": str(path), "reason": str(exc)})
            return _Known()
        return found
