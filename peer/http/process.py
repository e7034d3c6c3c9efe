"""What this process uses: CPU, memory, files; under the names that Prometheus' own clients use."""

from __future__ import annotations

import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from peer.http.exposition import one

if TYPE_CHECKING:
    from peer.http.exposition import Family

_STARTED: Final = time.time()
_PROC: Final = Path("/proc/self")


def process_families() -> list[Family]:
    """Measure this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    found = [
        one("process_cpu_seconds_total", "counter", "CPU time, user and system.", used.ru_utime + used.ru_stime),
        one("process_resident_memory_bytes", "gauge", "Resident memory.", _resident(used.ru_maxrss)),
        one("process_start_time_seconds", "gauge", "When this was loaded, since 1970.", round(_STARTED, 3)),
    ]
    if _PROC.exists():
        found.append(one("process_open_fds", "gauge", "Open files and sockets.", len(os.listdir(_PROC / "fd"))))
    return found


def _resident(most: int) -> int:
    """Return the resident bytes now; where the system does not tell, the most there ever were."""
    if _PROC.exists():
        return int((_PROC / "statm").read_text().split()[1]) * resource.getpagesize()
    return most if sys.platform == "darwin" else most << 10
