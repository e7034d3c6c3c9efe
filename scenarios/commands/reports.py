"""Where a run's report goes: into the folder that is asked for, or one of its own below ``reports``."""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError

if TYPE_CHECKING:
    from collections.abc import Iterator

_BELOW: Final = Path("reports")


@dataclass(frozen=True, slots=True)
class Folders:
    """``stage``: where the run is, with the daemons' homes and logs. ``report``: where its report goes."""

    stage: Path
    report: Path

    def write(self, found: dict[str, Any]) -> Path:
        """Write the report, beside the logs if anything is violated, and return the page's path."""
        from scenarios.running.page import write_pages

        write_pages(found, self.report)
        if found["violations"]:
            self.keep_logs()
        return self.report / "report.html"

    def keep_logs(self) -> Path:
        """Keep the daemons' logs, beside the report if there is one, and return where they are then."""
        logs = self.stage / "hosts"
        if self.report == self.stage:
            return logs
        for log in sorted(logs.glob("*.log")):
            shutil.copy(log, self.report)
        return self.report


@contextmanager
def folders(out: str | None, title: str) -> Iterator[Folders]:
    """Use a folder that is kept with everything; or one for the report alone, which is gone if there is none."""
    if out is not None:
        if Path(out).exists() and any(Path(out).iterdir()):
            raise CommandError(f"{out} is not empty; a run wants a folder of its own")
        yield Folders(Path(out), Path(out))
        return
    report = _own(title)
    try:
        with tempfile.TemporaryDirectory(prefix="distributary-scenario-") as scratch:
            yield Folders(Path(scratch), report)
    finally:
        with suppress(OSError):  # not empty
            report.rmdir()
            _BELOW.rmdir()


def _own(title: str) -> Path:
    """Make a folder for a report, now: a run is too long to find out at its end that it cannot be."""
    name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "scenario"
    name += time.strftime("-%Y%m%d-%H%M%S")
    for more in ("", *(f"-{n}" for n in range(2, 100))):
        try:
            (_BELOW / f"{name}{more}").mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as exc:
            raise CommandError(f"{_BELOW}: {exc.strerror}; say where the report goes with --out DIR") from None
        return _BELOW / f"{name}{more}"
    raise CommandError(f"{_BELOW / name} is there, and a hundred like it; say where else with --out DIR")
