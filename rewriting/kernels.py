"""How this package compiles: as ``xmlmatch`` does, plus a machine instruction on bit masks.

A mask is an ``int64`` of which every bit counts, the sign too: with ``uint64``, Numba would turn mixed
expressions into floats without a word.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from numba import types
from numba.extending import intrinsic

import xmlmatch
from xmlmatch.kernels import forget_stale, kernel

__all__ = ["MASK_BITS", "kernel", "lowest"]

MASK_BITS: Final = 64

# Compiled code of this package contains functions of xmlmatch, so it is stale when those change too.
forget_stale(Path(__file__).parent, Path(xmlmatch.__file__).parent)


@intrinsic
def _lowest(typingctx: Any, mask: Any) -> Any:

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, 1))

    return types.int64(types.int64), codegen


lowest: Any = _lowest
"""The number of the lowest bit that is set; the mask must not be 0."""
