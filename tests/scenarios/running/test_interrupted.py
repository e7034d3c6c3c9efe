"""Ctrl-C, as a terminal sends it, at several moments of a run: nothing is left, whatever was going on."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.processes import ROOT
from tests.scenarios.leftovers import gone, processes_with

LONG = """
title = "long"
[hosts]
count = 2
[links]
rtt_ms = 2
[subscriptions]
count = 4
[documents]
count = 60
rate = 2
[[replans]]
at = 0.2
[[faults]]
at = 0.8
freeze = ["h01"]
"""


@pytest.fixture
def folder():
    """A folder with a short path: sockets lie in it."""
    with tempfile.TemporaryDirectory(prefix="run-") as name:
        yield Path(name)


def interfaces():
    """List the network devices that are seen outside of namespaces."""
    return sorted(os.listdir("/sys/class/net"))


@pytest.mark.parametrize(
    ("moment", "times"),
    [("", 1), ("starting a source", 1), ("freeze", 2)],
    ids=["at once", "while hosts start", "while a plan is made and a daemon is frozen"],
)
@pytest.mark.timeout(200)
def test_ctrl_c_leaves_nothing(moment, times, folder):
    scenario, scratch, mark = folder / "long.toml", folder / "tmp", f"{folder}/marked"
    scenario.write_text(LONG)
    scratch.mkdir()
    before = interfaces()
    process = subprocess.Popen(
        [sys.executable, "-m", "peer", "scenario", "run", str(scenario)], cwd=folder, text=True,
        stderr=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"TMPDIR": str(scratch), "MARK": mark, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        log = ""
        while moment and moment not in log:
            line = process.stderr.readline()
            assert line, log
            log += line
        end = time.monotonic() + 100
        while moment == "freeze" and not any("/java " in one for one in processes_with(mark)):
            assert time.monotonic() < end
            time.sleep(0.1)
        for _ in range(times):
            os.killpg(process.pid, signal.SIGINT)
            time.sleep(0.2)
        _, rest = process.communicate(timeout=100)
        # Python ends itself by the signal where that came while it executed a text, though it was caught.
        assert process.returncode in (130, -signal.SIGINT), log + rest
        assert "Traceback" not in rest or not moment, rest
        assert gone(mark, 20) == []
        assert list(scratch.iterdir()) == []
        assert not (folder / "reports").exists()
        assert interfaces() == before
    finally:
        process.kill()
        process.communicate()
