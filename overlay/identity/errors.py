"""What can go wrong with identities; every message is one line that says what, and where possible what to do.

Ours to repair: ``BadName``, ``BadCredential``, ``BadToken``. The other side's doing: ``MalformedFrame``,
``Untrusted``, ``NotPermitted``, ``InvitationRefused``. ``StaleList`` is no fault: lists arrive in any order.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


class IdentityError(Exception):
    """Base of this package's errors; the message is one line, fit to be shown to a user as it is."""


class BadName(IdentityError):
    """A name, role or address that cannot be used; ``what`` says which of them, ``why`` what is wrong."""

    def __init__(self, what: str, text: str, why: str) -> None:
        super().__init__(f"{what} {text[:80]!r}: {why}")
        self.what = what
        self.text = text
        self.why = why


class BadCredential(IdentityError):
    """A key, certificate or setting on this machine is missing or unusable; ``remedy`` says what to do."""

    def __init__(self, path: Path, why: str, remedy: str) -> None:
        super().__init__(f"{path}: {why}; {remedy}")
        self.path = path
        self.why = why
        self.remedy = remedy


class BadToken(IdentityError):
    """A text that is not an invitation, or not all of one."""

    def __init__(self, why: str) -> None:
        super().__init__(f"this is not an invitation: {why}; paste it again, whole, or ask for a new one")
        self.why = why


class MalformedFrame(IdentityError):
    """Bytes from elsewhere that do not say what they should."""

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"malformed {what}: {why}")
        self.what = what
        self.why = why


class Untrusted(IdentityError):
    """A certificate or signature that proves nothing here; ``what`` says which, ``reason`` why not."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(f"{what}: {reason}")
        self.what = what
        self.reason = reason


class UnknownSigner(Untrusted):
    """A compact envelope whose signer's certificate is not known here: get its chain, then open it again."""

    def __init__(self, serial: int) -> None:
        super().__init__("signature", f"the certificate {serial:x} of its signer is not known here")
        self.serial = serial


class NotPermitted(IdentityError):
    """A member, truly itself, that may not do what it asks."""

    def __init__(self, site: str, why: str) -> None:
        super().__init__(f"site {site}: {why}")
        self.site = site
        self.why = why


class Refusal(enum.Enum):
    """Why an invitation is not accepted, as the joining user is told."""

    UNKNOWN = "it is not known here: it was withdrawn, has ended long ago, or is another network's"
    USED = "it was already used by another machine"
    EXPIRED = "it has expired"
    LATER = "the source cannot write to its disk"


class InvitationRefused(IdentityError):
    """An invitation that admits nobody."""

    def __init__(self, reason: Refusal) -> None:
        then = "use it again later" if reason is Refusal.LATER else "ask the source for a new one"
        super().__init__(f"the invitation is refused: {reason.value}; {then}")
        self.reason = reason


class StaleList(IdentityError):
    """A revocation list older than the one that is held."""

    def __init__(self, held: int, offered: int) -> None:
        super().__init__(f"revocation list {offered} is older than {held}, which is held already")
        self.held = held
        self.offered = offered
