"""Calibration: real cutting and real TLS, for a moment."""

import json

import pytest

from peer.calibration import Measured
from peer.options.file import NAME, read_file


def test_a_capacity_is_measured_told_and_saved(run, tmp_path):
    (tmp_path / NAME).write_text("# mine\nport = 7500\n")
    done = run("calibrate", "--seconds", "0.3", "--save", "--json", "--home", tmp_path)
    assert done.status == 0, done.err
    told = json.loads(done.out)
    assert told["batches"] > 0
    assert told["batch_bytes"] > 1000
    assert told["cpu_ms"] > told["cut_ms"] > 0
    assert told["bytes_per_second"] > 0
    assert told["capacity"] == Measured(
        *(told[name] for name in ("seconds", "batches", "batch_bytes", "bytes_per_second", "cpu_ms", "cut_ms"))
    ).capacity(5, 0.5, None)
    assert read_file(tmp_path / NAME) == {"port": ["7500"], "capacity": [str(told["capacity"])]}
    assert (tmp_path / NAME).read_text().startswith("# mine\n")


def test_it_is_shown_to_people_and_nothing_is_saved_unasked(run, tmp_path):
    done = run("calibrate", "--seconds", "0.2", "--rate", "50", "--uplink", "10", "--home", tmp_path)
    assert done.status == 0
    assert "--capacity" in done.lines[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("--seconds", "0"), ("--rate", "-1"), ("--share", "2"), ("--uplink", "0")])
def test_what_makes_no_sense_is_refused_in_one_line(run, words):
    done = run("calibrate", *words)
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert words[0] in done.err


@pytest.mark.parametrize(
    ("cpu_ms", "rate", "share", "uplink", "wanted"),
    [
        (1.0, 5, 0.5, None, 100),
        (1.0, 5, 1.0, None, 200),
        (1.0, 5, 0.5, 8, 10),
        (1e-9, 1, 1, None, 10_000),
        (1e6, 9, 1, None, 0),
    ],
)
def test_the_capacity_follows_from_the_narrower_of_core_and_uplink(cpu_ms, rate, share, uplink, wanted):
    assert Measured(1.0, 1, 10_000, 1, cpu_ms, 0.1).capacity(rate, share, uplink) == wanted
