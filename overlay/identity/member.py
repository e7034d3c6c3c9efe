"""Who a certificate says somebody is: a site of a network, with roles."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from overlay.identity.errors import BadName, NotPermitted, Untrusted

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

LONGEST_NAME: Final = 64
# Clocks of honest machines are at most this far apart; certificates begin this long before they are issued, and
# are accepted this long around their validity.
SKEW: Final = timedelta(minutes=5)

# No leading dot or dash: names become parts of paths and arguments of commands.
_NAME: Final = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_NAME - 1}}}")


class Role(enum.Enum):
    """What a site may do; a certificate names any number of them."""

    SOURCE = "source"
    PUBLISHER = "publisher"
    SUBSCRIBER = "subscriber"
    PLANNER = "planner"


def check_name(what: str, name: str) -> str:
    """Return the name of a site or network, or raise ``BadName``.

    >>> check_name("site", "node-7.example_a")
    'node-7.example_a'
    """
    if not _NAME.fullmatch(name):
        raise BadName(
            what, name,
            f"a name has 1 to {LONGEST_NAME} letters, digits, '.', '-' or '_', and begins with a letter or digit",
        )  # fmt: skip
    return name


def roles_named(names: Iterable[str]) -> frozenset[Role]:
    """Return the roles with these names, at least one, or raise ``BadName``.

    >>> sorted(role.name for role in roles_named(["publisher", "planner"]))
    ['PLANNER', 'PUBLISHER']
    """
    found = set()
    for name in names:
        try:
            found.add(Role(name))
        except ValueError:
            raise BadName("role", name, f"roles are {', '.join(role.value for role in Role)}") from None
    if not found:
        raise BadName("role", "", "a site has at least one role")
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class Member:
    """A site as its verified certificate describes it.

    ``since`` is the number of the revocation list in force when the site was invited; renewing keeps it, so it
    tells the certificates of before a revocation from those of after a new invitation.
    """

    network: str
    site: str
    roles: frozenset[Role]
    serial: int
    public_key: bytes
    since: int
    not_before: datetime
    not_after: datetime

    def require(self, role: Role) -> None:
        """Raise ``NotPermitted`` unless the member has the role."""
        if role not in self.roles:
            why = f"its certificate does not give it the role {role.value}"
            raise NotPermitted(self.site, f"{why}; invite a machine with --role {role.value} for that")

    def check_time(self, now: datetime) -> None:
        """Raise ``Untrusted`` unless the certificate is valid now, give or take ``SKEW``."""
        check_validity(f"certificate of {self.site}", self.not_before, self.not_after, now)


def check_validity(what: str, not_before: datetime, not_after: datetime, now: datetime) -> None:
    """Raise ``Untrusted`` unless ``now`` lies in the interval, give or take ``SKEW``."""
    if now < not_before - SKEW:
        raise Untrusted(what, f"it is valid from {not_before:%Y-%m-%d %H:%M} UTC on; compare the machines' clocks")
    if now >= not_after + SKEW:
        raise Untrusted(what, f"it ended on {not_after:%Y-%m-%d %H:%M} UTC")
