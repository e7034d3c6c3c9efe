"""What a peer remembers of its network between two runs, so that it can do without the source for a while.

The list of the revoked: without it, whoever is revoked would be let in again until the source is reached.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from overlay.identity import BadCredential, IdentityError, RevocationList, read_own_list
from overlay.identity.private_files import read_private, write_private

if TYPE_CHECKING:
    from pathlib import Path

    from overlay.identity import Root

_LOG: Final = logging.getLogger("distributary.peer")
_LIST: Final = "revocations.bin"


class Remembered:
    """Files in the identity folder of a peer."""

    def __init__(self, folder: Path, root: Root) -> None:
        self._folder, self._root = folder, root

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
        """Keep a list, durably."""
        write_private(self._folder / _LIST, found.encoded)
