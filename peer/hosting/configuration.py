"""How a subscription is to be fed, as the source says it: the first choice and what to fall back to.

The source signs these bytes; the signed form is also the receiver's permit when it opens the feeds that it names.
Inputs come with their patterns, so that a receiver can work out what to ask of each without asking anybody.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

MOST_BYTES: Final = 256 << 10
MOST_CHOICES: Final = 16


class Version(NamedTuple):
    """Which configuration is newer: the generation of the log, the epoch, and the change within it."""

    generation: int
    epoch: int
    revision: int


class Input(msgspec.Struct, frozen=True, array_like=True):
    """A subscription that feeds, where it is, and its pattern."""

    subscription: str
    site: str
    pattern: str


class Configuration(msgspec.Struct, frozen=True, array_like=True):
    """How one subscription is fed. ``choices``: sets of inputs in order of preference; the source comes after.
    ``feeds``: how many others it may feed at most. ``start``: its first document is the one after."""

    subscription: str
    site: str
    pattern: str
    generation: int
    epoch: int
    revision: int
    start: int
    feeds: int
    choices: tuple[tuple[Input, ...], ...]

    @property
    def version(self) -> Version:
        """How new it is."""
        return Version(self.generation, self.epoch, self.revision)

    def names(self, upstream: str, site: str) -> bool:
        """Say whether a subscription on a site is among those that may feed this one."""
        return any(one.subscription == upstream and one.site == site for choice in self.choices for one in choice)


class MalformedConfiguration(Exception):
    """Bytes that are no configuration."""


_DECODER: Final = msgspec.msgpack.Decoder(Configuration)


def encode(configuration: Configuration) -> bytes:
    """Write a configuration."""
    return msgspec.msgpack.encode(configuration)


def decode_untrusted(data: bytes) -> Configuration:
    """Read a configuration; raise ``MalformedConfiguration`` for anything else."""
    if len(data) > MOST_BYTES:
        raise MalformedConfiguration(f"{len(data):,} bytes; the most is {MOST_BYTES:,}")
    try:
        found = _DECODER.decode(data)
    except msgspec.DecodeError as exc:
        raise MalformedConfiguration(str(exc)) from None
    if len(found.choices) > MOST_CHOICES or min(found.version) < 0 or found.start < 0 or found.feeds < 0:
        raise MalformedConfiguration("numbers out of range")
    if any(not choice for choice in found.choices):
        raise MalformedConfiguration("a choice without inputs")
    return found
