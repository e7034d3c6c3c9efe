"""What counts how much in a live network, where inputs are joined at the receiver only."""

from __future__ import annotations

from typing import Final

from rewriting.pricing import Weights

LIVE: Final = Weights(joins=False)
