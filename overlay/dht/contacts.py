"""Contacts: nodes of the DHT and how to reach them."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import Annotated, Final

import msgspec

ID_BITS: Final = 160
ID_BYTES: Final = ID_BITS // 8
NodeId = Annotated[bytes, msgspec.Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
Address = tuple[str, int]


class Contact(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A node: its id, IP address and UDP port. Has what kademlia's buckets ask of their nodes."""

    id: NodeId
    ip: Annotated[str, msgspec.Meta(max_length=45)]
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)]

    @property
    def long_id(self) -> int:
        """The id as a number."""
        return int.from_bytes(self.id, "big")

    @property
    def address(self) -> Address:
        """Where datagrams to the node go."""
        return (self.ip, self.port)

    def same_home_as(self, other: Contact) -> bool:
        """Whether both are at one address."""
        return self.ip == other.ip and self.port == other.port


@lru_cache(maxsize=4096)
def is_host(ip: str) -> bool:
    """Whether a text is the address of one host: no name, which would be resolved while the event loop waits.

    >>> is_host("10.0.0.1"), is_host("::1"), is_host("example.org"), is_host("0.0.0.0"), is_host("224.0.0.1")
    (True, True, False, False, False)
    """
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:
        return False
    return not (address.is_multicast or address.is_unspecified or ip == "255.255.255.255")
