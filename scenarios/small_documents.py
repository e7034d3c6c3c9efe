"""Small random documents over few names, and patterns that match many of them and feed each other in many ways."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random

PATTERNS: Final = (
    "//a{cont}", "//a[b]{cont}", "//b{val}", "//a/b{val}", "//a[c]/b{val}", "//c{val}", "//*{val}", "//a[b{val}]",
    "//a[b{val}][c{val}]", "//a[b='1']{cont}", "//b[.='1']{val}", "//a[.//c]", "//a[c{val}]/b{val}", "/r{cont}",
    "/r//c{val}", "//b[.>1]{val}", "//a{id}/c{id,val}",
)  # fmt: skip


def small_document(rng: random.Random) -> bytes:
    """Draw a document."""

    def element(depth: int) -> str:
        name = rng.choice("aabbc")
        inside = str(rng.randint(0, 3)) if depth > 3 or rng.random() < 0.3 else ""
        inside += "".join(element(depth + 1) for _ in range(rng.randint(0, 3 if depth < 3 else 1)))
        return f"<{name}>{inside}</{name}>"

    return f"<r>{''.join(element(1) for _ in range(rng.randint(0, 4)))}</r>".encode()
