"""Without the right to make namespaces: it is said, and loopback is offered, or taken."""

import ctypes
import json
import os
import subprocess
import sys

import pytest

from tests.processes import ROOT

TINY = """
title = "tiny"
[hosts]
count = 1
[subscriptions]
count = 2
[documents]
count = 3
[[faults]]
at = 0.1
cut = ["h00"]
seconds = 0.2
"""
_DROP, _SYS_ADMIN = 24, 21  # PR_CAPBSET_DROP, CAP_SYS_ADMIN


def without_rights():
    """Give up the right to make namespaces, as a user who is not root does not have it."""
    ctypes.CDLL(None).prctl(_DROP, _SYS_ADMIN, 0, 0, 0)


@pytest.mark.timeout(200)
def test_without_rights_loopback_is_offered_and_by_default_taken(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    command = [sys.executable, "-m", "peer", "scenario", "run", str(path), "--json"]

    def run(*words):
        return subprocess.run(
            [*command, *words], cwd=tmp_path, preexec_fn=without_rights, capture_output=True, text=True,
            check=False, env=os.environ | {"PYTHONPATH": str(ROOT)},
        )  # fmt: skip

    refused = run("--hosts", "namespaces")
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1] == (
        "distributary: network namespaces need root; run as root, or on loopback with --hosts loopback"
    )
    done = run()
    assert done.returncode == 0, done.stderr
    assert "network namespaces need root" in done.stderr
    assert "going on with loopback" in done.stderr
    found = json.loads(done.stdout)
    assert found["hosts"] == "loopback"
    assert found["happened"][0][2].startswith("left out")
