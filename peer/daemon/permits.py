"""Signed configurations: opening them, and judging who may open a feed with one.

A permit counts if the source signed it, for this log, in the current epoch or the one before, and no newer one
of the same subscription has been seen: so nobody feeds on what was taken from it.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from overlay.identity import IdentityError, Role, open_signed, sign
from peer.hosting.configuration import MalformedConfiguration, Version, decode_untrusted, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from overlay.identity import Credential, RevocationList
    from overlay.wire.frames import Open
    from peer.hosting.configuration import Configuration

KIND: Final = "configuration"
_MOST_REMEMBERED: Final = 100_000


class Permits:
    """What a machine knows of others' configurations."""

    def __init__(self, credential: Credential, revocations: Callable[[], RevocationList]) -> None:
        self._credential, self._revocations = credential, revocations
        self._opened: dict[bytes, Configuration] = {}
        self._newest: dict[str, Version] = {}
        self.generation = self.epoch = 0

    def use(self, credential: Credential) -> None:
        """Go on with a renewed credential."""
        self._credential = credential

    @property
    def serial(self) -> int:
        """The serial number of the certificate that ``sign`` signs under."""
        return self._credential.member.serial

    def sign(self, configuration: Configuration) -> bytes:
        """Sign a configuration, as the source."""
        return sign(self._credential.signer, KIND, encode(configuration))

    def open(self, signed: bytes) -> Configuration:
        """Return what the source signed; ``IdentityError`` or ``MalformedConfiguration`` if it is not that."""
        known = self._opened.get(signed)
        if known is None:
            known = self._open(signed, datetime.now(UTC))
            if len(self._opened) >= _MOST_REMEMBERED:
                self._opened.clear()  # they are only opened again
            self._opened[signed] = known
        self.reached(known.generation, known.epoch)
        return known

    def open_kept(self, signed: bytes) -> Configuration:
        """Return what this machine opened before and kept: installed configurations never expire."""
        known = self._open(signed, None)
        self.reached(known.generation, known.epoch)
        return known

    def reached(self, generation: int, epoch: int) -> None:
        """Note that the network is in an epoch of a generation; it never goes back."""
        self.generation, self.epoch = max((self.generation, self.epoch), (generation, epoch))

    def _open(self, signed: bytes, now: datetime | None) -> Configuration:
        said = open_signed(
            signed, KIND, root=self._credential.root, now=now, required_role=Role.SOURCE,
            revocations=self._revocations(),
        )  # fmt: skip
        return decode_untrusted(said.payload)

    def forbids(self, site: str, asked: Open, *, is_last: bool = False) -> str:
        """Say why a machine may not open a feed with its permit; empty if it may, as far as the permit goes.
        ``is_last``: it is known that there is no newer one, however old it is."""
        try:
            permit = self.open(asked.permit)
        except (IdentityError, MalformedConfiguration) as exc:
            return str(exc)
        if permit.site != site or permit.subscription != asked.downstream or permit.pattern != asked.query:
            return "the permit is another's"
        if permit.generation < self.generation:
            return f"the permit is of generation {permit.generation} of the log; it is {self.generation} now"
        if permit.epoch + 1 < self.epoch and not is_last:
            return f"the permit is of epoch {permit.epoch}; it is epoch {self.epoch} now"
        if permit.version < self._newest.get(permit.subscription, permit.version):
            return "a newer permit has been seen"
        if len(self._newest) >= _MOST_REMEMBERED:
            self._newest.clear()
        self._newest[permit.subscription] = permit.version
        return ""

    def names(self, asked: Open, own: str) -> str:
        """Say why a permit that holds does not name a subscription of this machine; empty if it does."""
        return "" if self.open(asked.permit).names(asked.upstream, own) else f"it does not name {asked.upstream}"
