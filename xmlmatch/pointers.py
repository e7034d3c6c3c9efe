"""Typed pointers from addresses, for compiled code whose inner loops must not count references.

An array that Numba passes along is counted at every hand-over; where a step takes ten nanoseconds that is most
of the time. A pointer is a plain number. The caller keeps the arrays alive.
"""

from __future__ import annotations

from typing import Any, Final

from numba import types
from numba.extending import intrinsic


def _pointer_to(element: Any) -> Any:
    """Make an intrinsic that turns an address into a pointer to ``element``."""

    pointer_type: Any = types.CPointer(element)  # type: ignore[no-untyped-call]  # numba has no types for it

    @intrinsic
    def pointer(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return pointer_type(types.intp), codegen

    return pointer


bytes_at: Final = _pointer_to(types.uint8)
int32_at: Final = _pointer_to(types.int32)
int64_at: Final = _pointer_to(types.int64)
float64_at: Final = _pointer_to(types.float64)
address_at: Final = _pointer_to(types.intp)
