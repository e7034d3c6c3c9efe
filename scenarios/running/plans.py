"""Full plans made during a run: each a process beside the daemons, as an operator's would be."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pathlib import Path

_END_S: Final = 20.0
_MOST_SAID: Final = 500


@dataclass(frozen=True, slots=True)
class _Made:
    process: subprocess.Popen[str]
    at: float
    begun: float


class Plans:
    """Starts plans and takes in what they say; a context manager whose end is the end of those still at it.

    ``folder``: where they keep what is temporary, the Java machine's files too.
    """

    def __init__(self, home: Path, folder: Path) -> None:
        self._home, self._folder = home, folder
        self._at_it: list[_Made] = []
        self.told: list[dict[str, Any]] = []

    def begin(self, at: float, *, latency: bool) -> None:
        """Start one; ``at``: when that is, for the report."""
        self._folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "peer", "replan", "--home", str(self._home), "--json"]
        command += [] if latency else ["--no-latency"]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
            env=os.environ | {"TMPDIR": str(self._folder), "SPARK_LOCAL_DIRS": str(self._folder)},
        )  # fmt: skip
        self._at_it.append(_Made(process, at, time.monotonic()))

    @property
    def are_done(self) -> bool:
        """Whether none is at it any more; what they said is in ``told``."""
        for one in [one for one in self._at_it if one.process.poll() is not None]:
            out, wrong = one.process.communicate()
            told: dict[str, Any] = {"at": round(one.at, 2), "seconds": round(time.monotonic() - one.begun, 1)}
            done = one.process.returncode == 0
            told |= json.loads(out.splitlines()[-1]) if done else {"failed": wrong[-_MOST_SAID:]}
            self.told.append(told)
            self._at_it.remove(one)
        return not self._at_it

    def __enter__(self) -> Plans:
        return self

    def __exit__(self, *_: object) -> None:
        """End what is still at it, with everything it has started: each is a process group of its own."""
        for one in self._at_it:
            _tell_group(one.process.pid, signal.SIGTERM)
        for one in self._at_it:
            with suppress(subprocess.TimeoutExpired):
                one.process.communicate(timeout=_END_S)
            _tell_group(one.process.pid, signal.SIGKILL)
            one.process.communicate()
        shutil.rmtree(self._folder, ignore_errors=True)  # what it leaves, the run's folder takes with it


def _tell_group(group: int, sig: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, sig)
