"""Where a machine listens: a host and a port, written ``host:port`` or ``[host]:port``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from overlay.identity.errors import BadName

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_ADDRESS: Final = 264
MOST_ADDRESSES: Final = 8

_PLAIN: Final = re.compile(r"([A-Za-z0-9][A-Za-z0-9.-]{0,252}):([0-9]{1,5})")
_BRACKETED: Final = re.compile(r"\[([0-9A-Fa-f:.]{2,45})\]:([0-9]{1,5})")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A host name or IP address, and a port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Address:
        """Read an address, or raise ``BadName``.

        >>> Address.parse("source.example:7400"), str(Address.parse("[::1]:7400"))
        (Address(host='source.example', port=7400), '[::1]:7400')
        """
        found = _PLAIN.fullmatch(text) or _BRACKETED.fullmatch(text)
        if found is None or not 1 <= int(found[2]) <= 65535:
            raise BadName("address", text, "write host:port, or [host]:port for IPv6, with a port of 1 to 65535")
        return cls(found[1], int(found[2]))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(texts: Iterable[str]) -> tuple[Address, ...]:
    """Read addresses, keeping their order; ``BadName`` if one is wrong or there are too many."""
    found = tuple(Address.parse(text) for text in texts)
    if len(found) > MOST_ADDRESSES:
        raise BadName("address", str(found[-1]), f"at most {MOST_ADDRESSES} addresses are kept")
    return found
