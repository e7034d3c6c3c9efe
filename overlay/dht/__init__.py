"""A DHT of signed records among the members of a network: kademlia's routing, with what it lacks.

Layers, bottom up: ``datagrams`` (sealing under the network's key, with ``replay``) and ``messages`` (what nodes
say to each other, with ``contacts``); ``records`` and ``large_values`` (what is held); ``record_store``,
``table``, ``lookup`` and ``own_records`` (what a node knows and decides), all pure, with ``settings``. The drivers
run them: ``questions_driver``, ``protocol_driver``, ``lookup_driver`` and ``node_driver`` on asyncio,
``dht_driver`` on trio. Start reading at ``records``, ``datagrams`` and ``dht_driver``, whose ``open_dht`` is the
way in; it is not imported here, because it brings trio and kademlia along.

The DHT may omit, never lie: records are signed, the highest valid version wins, and the source is the fallback.
"""

from overlay.dht.datagrams import Refusal
from overlay.dht.errors import (
    BrokenEndpoint,
    DhtError,
    LocalBadRecord,
    LocalTooMany,
    MalformedRecord,
    RemoteCorruptValue,
)
from overlay.dht.large_values import LargeValue, split
from overlay.dht.record_store import StoreLimits
from overlay.dht.records import Record, Verify, Version, decode_record_untrusted, encode_record, signed_bytes
from overlay.dht.settings import DhtSettings

__all__ = [
    "BrokenEndpoint",
    "DhtError",
    "DhtSettings",
    "LargeValue",
    "LocalBadRecord",
    "LocalTooMany",
    "MalformedRecord",
    "Record",
    "Refusal",
    "RemoteCorruptValue",
    "StoreLimits",
    "Verify",
    "Version",
    "decode_record_untrusted",
    "encode_record",
    "signed_bytes",
    "split",
]
