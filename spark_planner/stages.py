"""Stages: each leaves its output in a folder of its own, whole or not at all, and is not run again without need.

A stage writes into a folder beside its own, which takes its place in one step when it is complete. A fingerprint
of all that went into it is kept inside: the next run with the same fingerprint reads instead of computing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_DONE: Final = "done.json"


class Stages:
    """The stages of one plan below a folder; ``seconds`` says how long each took, 0 where it was read."""

    def __init__(self, folder: Path, told: Callable[[str, str], None] = lambda *_: None) -> None:
        self.folder, self.told = folder, told
        self.seconds: dict[str, float] = {}

    def run(self, name: str, fingerprint: str, compute: Callable[[Path], None]) -> Path:
        """Return the folder of a stage, computing it unless it is there from the same input."""
        folder, fresh = self.folder / name, self.folder / f".{name}.new"
        if self._is_done(folder, fingerprint):
            self.told(name, "as before")
            self.seconds[name] = 0.0
            return folder
        started = time.monotonic()
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        try:
            compute(fresh)
            (fresh / _DONE).write_text(json.dumps({"fingerprint": fingerprint}), encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            os.replace(fresh, folder)
        except BaseException:
            shutil.rmtree(fresh, ignore_errors=True)
            raise
        self.seconds[name] = time.monotonic() - started
        self.told(name, f"{self.seconds[name]:.1f} s")
        return folder

    def _is_done(self, folder: Path, fingerprint: str) -> bool:
        try:
            told = json.loads((folder / _DONE).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return isinstance(told, dict) and told.get("fingerprint") == fingerprint


def fingerprint(*parts: object) -> str:
    """Hash what a stage depends on; bytes and paths' contents count as they are, the rest by its ``repr``."""
    digest = hashlib.sha256()
    for part in parts:
        data = (
            part.read_bytes()
            if isinstance(part, Path)
            else part
            if isinstance(part, bytes)
            else repr(part).encode()
        )
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()
