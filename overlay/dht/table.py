"""The routing table: kademlia's, with what is wrong in it put right.

Kademlia's table looks for near nodes in buckets to the left and right by turns and stops at k, which misses near
ones; its bucket bounds are off by one; a bucket's waiting nodes count as new each time they are heard of; one
address can fill any number of places; and a full bucket starts a task that nobody owns. Here each is overridden.

Bucket ranges are aligned blocks, as in the paper (sec. 2.4). For any target, blocks that do not overlap lie at
distances that do not overlap, so buckets sorted by distance yield the nearest nodes in order.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, Final

from kademlia.routing import KBucket, RoutingTable  # type: ignore[import-untyped] # ships no types

from overlay.dht.contacts import ID_BITS, ID_BYTES, Contact

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

MOST_CONTACTS_KNOWN: Final = 8192


class Table(RoutingTable):  # type: ignore[misc] # its base has no types
    """The contacts a node knows, in buckets of up to ``k`` that halve the id space towards the node's own id."""

    node: Contact
    buckets: list[Any]  # of KBucket

    def __init__(self, own: Contact, k: int, *, most: int = MOST_CONTACTS_KNOWN) -> None:
        super().__init__(None, k, own)
        self.most = most

    def flush(self) -> None:
        """Forget all contacts."""
        self.buckets = [KBucket(0, (1 << ID_BITS) - 1, self.ksize)]

    def get_bucket_for(self, node: Contact) -> int:
        """Tell which bucket an id belongs to."""
        return bisect_left(self.buckets, node.long_id, key=lambda bucket: bucket.range[1])

    def find_neighbors(
        self, node: Contact | int, k: int | None = None, exclude: Contact | None = None
    ) -> list[Contact]:
        """List the k contacts nearest to an id, nearest first; all there are, if fewer."""
        target = node if isinstance(node, int) else node.long_id
        k = k or self.ksize
        found: list[Contact] = []
        for bucket in sorted(self.buckets, key=lambda bucket: _least_distance(bucket.range, target)):
            near = [n for n in bucket.nodes.values() if exclude is None or not n.same_home_as(exclude)]
            found += heapq.nsmallest(k - len(found), near, key=lambda n: n.long_id ^ target)
            if len(found) == k:
                break
        return found

    def contains(self, contact: Contact) -> bool:
        """Whether a contact is known, at this address; waiting ones count."""
        bucket = self.buckets[self.get_bucket_for(contact)]
        known = bucket.nodes.get(contact.id) or bucket.replacement_nodes.get(contact.id)
        return known is not None and known.same_home_as(contact)

    def add_contact(self, node: Contact) -> Contact | None:
        """Take in a contact that proved to be there, or move it to its bucket's end.

        If its bucket is full it waits there for a place, and the answer is the contact to ask whether it is still
        there: the one heard of least recently.
        """
        if node.id == self.node.id:
            return None
        if not self.contains(node) and not self._make_way(node):
            return None
        while True:
            index = self.get_bucket_for(node)
            bucket = self.buckets[index]
            if bucket.add_node(node):
                return None
            # Paper, sec. 4.2: also split away from the own id, up to depths that are multiples of 5.
            if not (bucket.has_in_range(self.node) or bucket.depth() % 5):
                head: Contact = bucket.head()
                return head
            self.split_bucket(index)

    def remove_contact(self, node: Contact) -> None:
        """Drop a contact, unless it has moved to another address meanwhile."""
        if self.contains(node):
            super().remove_contact(node)

    def contacts(self) -> Iterator[Contact]:
        """Go through all contacts, waiting ones included."""
        for bucket in self.buckets:
            yield from bucket.nodes.values()
            yield from bucket.replacement_nodes.values()

    def refresh_ids(self, rng: random.Random) -> list[int]:
        """Draw an id from each bucket, to look up."""
        return [rng.randint(*bucket.range) for bucket in self.buckets]

    def _make_way(self, node: Contact) -> bool:
        """Drop who was at the address, and the id's former address; False if the table is full."""
        contacts = list(self.contacts())
        stale = [known for known in contacts if known.same_home_as(node) or known.id == node.id]
        for known in stale:
            self.remove_contact(known)
        return len(contacts) - len(stale) < self.most


def _least_distance(block: tuple[int, int], target: int) -> int:
    """Tell how near to a target an aligned block of ids comes."""
    low, high = block
    return 0 if low <= target <= high else (low ^ target) & ~(high - low)


def as_id(number: int) -> bytes:
    """Write an id as bytes."""
    return number.to_bytes(ID_BYTES, "big")
