"""Python's own Expat, driven without Python callbacks.

Theory of operation
-------------------
``pyexpat`` publishes the Expat functions it was built with as a table of C pointers (the capsule
``pyexpat.expat_CAPI``, made for ``_elementtree``). We hand Expat handlers that Numba compiled, so that a
document goes from bytes to arrays with no Python object per node: about five times faster than the same
index filled from Python callbacks, and it runs without the GIL.

The table has no "stop" function. A handler that meets something refused sets a code in its state, all
handlers then do nothing, and ``run`` looks at the code between chunks; Expat's own amplification limit
bounds what one chunk can cost.
"""

from __future__ import annotations

import ctypes
import pyexpat
from ctypes import CFUNCTYPE, c_char_p, c_int, c_ulong, c_void_p
from typing import TYPE_CHECKING, Final

from xmlmatch.errors import DocumentError

if TYPE_CHECKING:
    from collections.abc import Callable

    from xmlmatch.handlers import Handlers

FIRST_CHUNK_BYTES: Final = 1 << 20
# A document with a DOCTYPE begins with small pieces, so that an entity definition is refused before much of what
# it defines can be expanded. Each piece is twice the last: Expat scans an unfinished token again with every
# piece, and equal pieces would make a long comment quadratic.
CAREFUL_CHUNK_BYTES: Final = 512
_MOST_CHUNK_BYTES: Final = 1 << 28


class _CApi(ctypes.Structure):
    """The leading part of ``struct PyExpat_CAPI``; fields are only ever appended to it."""

    _fields_ = (
        ("magic", c_char_p),
        ("size", c_int),
        ("version", c_int * 3),
        ("ErrorString", CFUNCTYPE(c_char_p, c_int)),
        ("GetErrorCode", CFUNCTYPE(c_int, c_void_p)),
        ("GetErrorColumnNumber", CFUNCTYPE(c_ulong, c_void_p)),
        ("GetErrorLineNumber", CFUNCTYPE(c_ulong, c_void_p)),
        ("Parse", CFUNCTYPE(c_int, c_void_p, c_void_p, c_int, c_int)),
        ("ParserCreate_MM", CFUNCTYPE(c_void_p, c_char_p, c_void_p, c_char_p)),
        ("ParserFree", CFUNCTYPE(None, c_void_p)),
        ("SetCharacterDataHandler", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("SetCommentHandler", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("SetDefaultHandlerExpand", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("SetElementHandler", CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)),
        ("SetNamespaceDeclHandler", c_void_p),
        ("SetProcessingInstructionHandler", CFUNCTYPE(None, c_void_p, c_void_p)),
        ("SetUnknownEncodingHandler", c_void_p),
        ("SetUserData", CFUNCTYPE(None, c_void_p, c_void_p)),
    )


def _load() -> _CApi:
    capsule = pyexpat.expat_CAPI
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype = c_void_p
    pointer_of.argtypes = [ctypes.py_object, c_char_p]
    api = _CApi.from_address(pointer_of(capsule, b"pyexpat.expat_CAPI"))
    if not (api.magic or b"").startswith(b"pyexpat.expat_CAPI 1.") or api.size < ctypes.sizeof(_CApi):
        raise ImportError(
            f"this Python's pyexpat has an unknown C table ({api.magic!r}); use CPython 3.11 to 3.14"
        )
    return api


_API: Final = _load()


def run(
    data: bytes,
    handlers: Handlers,
    state_address: int,
    *,
    encoding: bytes | None,
    careful: bool,
    refused: Callable[[], bool],
) -> None:
    """Parse ``data`` with ``handlers``; stop early once ``refused()``; raise ``DocumentError`` if ill formed.

    ``careful``: begin with small pieces, for a document that has a DOCTYPE.
    """
    parser = _API.ParserCreate_MM(encoding, None, None)
    if not parser:
        raise MemoryError("Expat could not allocate a parser")
    try:
        _install(parser, handlers, state_address)
        base = ctypes.cast(c_char_p(data), c_void_p).value or 0
        at, total = 0, len(data)
        step = CAREFUL_CHUNK_BYTES if careful else FIRST_CHUNK_BYTES
        while True:
            length = min(step, total - at)
            final = at + length == total
            status = _API.Parse(parser, base + at, length, int(final))
            if refused():
                return
            if status == 0:
                raise _error(parser)
            if final:
                return
            at += length
            step = min(2 * step, _MOST_CHUNK_BYTES)
    finally:
        _API.ParserFree(parser)


def _install(parser: int, handlers: Handlers, state_address: int) -> None:
    _API.SetUserData(parser, state_address)
    _API.SetElementHandler(parser, handlers.start, handlers.end)
    _API.SetCharacterDataHandler(parser, handlers.text)
    _API.SetCommentHandler(parser, handlers.comment)
    _API.SetProcessingInstructionHandler(parser, handlers.instruction)
    _API.SetDefaultHandlerExpand(parser, handlers.other)


def _error(parser: int) -> DocumentError:
    reason = (_API.ErrorString(_API.GetErrorCode(parser)) or b"not well formed").decode()
    line, column = _API.GetErrorLineNumber(parser), _API.GetErrorColumnNumber(parser) + 1
    return DocumentError(reason, line=line, column=column)
