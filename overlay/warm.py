"""``python -m overlay.warm``: compile every kernel into Numba's cache, so that first use is quick."""

from __future__ import annotations

from overlay.matching.warm import warm

if __name__ == "__main__":
    warm()
