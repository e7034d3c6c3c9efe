"""How this package compiles: as ``xmlmatch`` does; its code is stale when ``rewriting`` or ``xmlmatch`` change."""

from __future__ import annotations

from pathlib import Path

import rewriting
import xmlmatch
from xmlmatch.kernels import forget_stale, kernel

__all__ = ["kernel"]

forget_stale(Path(__file__).parent, Path(rewriting.__file__).parent, Path(xmlmatch.__file__).parent)
