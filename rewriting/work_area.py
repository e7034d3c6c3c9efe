"""The work area of one search: flat arrays that are made once per thread, and what is where in them.

Making arrays anew for each query would take as long as its search.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from rewriting.kernels import MASK_BITS, kernel
from xmlmatch.pointers import int64_at

MOST_MEMBERS: Final = 8
MOST_SETS: Final = 2048
MOST_POOL: Final = 256
TABLE: Final = 4 * MOST_SETS

S_COUNT, S_MEMBERS, S_FIELDS = 0, 1, 1 + MOST_MEMBERS
K_PROMISE, K_TIE, K_COVERS, K_FIELDS = range(4)
H_SIZE, H_LINK, H_POOL, H_SETS, H_HEAP, H_FOUND, H_BEST, H_STAMP, H_OVERFLOW, H_FIELDS = range(10)
R_PRICE, R_BEST, R_SCARCE, R_CURRENT, R_PROVIDERS, R_FIRST, R_FIRST_PROMISE, R_FIRST_TIE, R_FIELDS = range(9)


def scratch() -> tuple[np.ndarray[Any, Any], ...]:
    """Make the work area of one thread; keep it alive as long as pointers to it are used."""
    return (
        np.zeros(H_FIELDS, np.int64),  # head
        np.zeros((MOST_SETS, S_FIELDS), np.int64),  # sets
        np.zeros((MOST_SETS, K_FIELDS), np.int64),  # their keys
        np.zeros(MOST_SETS, np.int64),  # heap of uncovered sets
        np.zeros(MOST_SETS, np.int64),  # candidates found
        np.zeros((TABLE, 2), np.int64),  # sets seen
        np.zeros((MOST_POOL, 3), np.int64),  # extensions: promise, hash, member
        np.zeros((R_FIELDS, MASK_BITS), np.int64),  # by query node
        np.zeros(MOST_POOL, np.int64),  # pool: feeders
        np.zeros(MOST_POOL * MASK_BITS, np.int64),  # costs of the pool
        np.zeros(MOST_POOL, np.int64),  # hashes of the pool
    )


@kernel
def pointers(work: Any) -> Any:
    """Turn a work area into plain pointers."""
    a, b, c, d, e, f, g, h, i, j, k = work
    return (
        int64_at(a.ctypes.data), int64_at(b.ctypes.data), int64_at(c.ctypes.data), int64_at(d.ctypes.data),
        int64_at(e.ctypes.data), int64_at(f.ctypes.data), int64_at(g.ctypes.data), int64_at(h.ctypes.data),
        int64_at(i.ctypes.data), int64_at(j.ctypes.data), int64_at(k.ctypes.data),
    )  # fmt: skip
