"""The units that systemd gets."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from peer.systemd import DAEMONS, unit, unit_name
from tests.processes import ROOT


def directives(text):
    """Return the directives of a unit; repeated ones as a list."""
    found = {}
    for line in text.splitlines():
        if "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            found.setdefault(name, []).append(value)
    return found


@pytest.mark.parametrize("daemon", DAEMONS)
def test_the_files_in_packaging_are_what_is_printed(daemon):
    assert (ROOT / "packaging" / unit_name(daemon)).read_text() == unit(daemon)


@pytest.mark.parametrize("daemon", DAEMONS)
def test_a_unit_is_hardened_and_has_a_folder_for_compiled_code(daemon):
    found = directives(unit(daemon))
    assert found["Type"] == ["notify"]
    assert found["ExecStart"] == [f"/usr/local/bin/distributary {daemon} run"]
    assert found["Environment"] == ["DISTRIBUTARY_HOME=%S/distributary", "NUMBA_CACHE_DIR=%S/distributary/kernels"]
    assert found["ProtectSystem"] == ["strict"]
    assert found["DynamicUser"] == found["NoNewPrivileges"] == ["yes"]
    assert found["Restart"] == ["on-failure"]
    assert found["LimitNOFILE"] == ["65536"]
    assert "MemoryDenyWriteExecute" not in found  # kernels are compiled in memory


def test_systemd_understands_the_units_where_it_is_there(tmp_path):
    program = Path(sys.executable).with_name("distributary")
    for daemon in DAEMONS:
        (tmp_path / unit_name(daemon)).write_text(unit(daemon, str(program)))
    files = sorted(tmp_path.iterdir())
    assert len(files) == 3
    if shutil.which("systemd-analyze"):
        done = subprocess.run(
            ["systemd-analyze", "verify", *files], capture_output=True, text=True, timeout=60, check=False
        )
        assert (done.returncode, [line for line in done.stderr.splitlines() if "distributary" in line]) == (0, [])


def test_code_in_a_home_folder_stays_readable_and_odd_paths_are_quoted():
    assert directives(unit("peer"))["ProtectHome"] == ["yes"]
    assert directives(unit("peer", "/home/a/distributary"))["ProtectHome"] == ["read-only"]
    assert directives(unit("peer", "/opt/a b/x"))["ExecStart"] == ['"/opt/a b/x" peer run']


def test_the_command_prints_the_unit_for_this_machine(run):
    done = run("service", "--print", "peer")
    assert done.status == 0
    assert directives(done.out)["ExecStart"][0].split()[0].strip('"').endswith("/distributary")
    assert json.loads(run("service", "--print", "source", "--json").out)["name"] == "distributary-source.service"
    assert run("service", "--print", "all").status == 2
