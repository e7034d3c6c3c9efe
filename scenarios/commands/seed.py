"""What a seed on the command line may be."""

from __future__ import annotations

from peer.errors import CommandError


def seed(value: int) -> int:
    """Return the seed; a negative one would give the same draws as its positive twin."""
    if value < 0:
        raise CommandError(f"--seed {value}: expected a number from 0 up")
    return value
