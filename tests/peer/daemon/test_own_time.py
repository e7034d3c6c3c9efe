"""A clock that stands still while others have the cores."""

import os
import subprocess
import sys
import time

from peer.daemon import own_time
from peer.daemon.own_time import OwnTime


def test_it_goes_on_while_something_other_than_a_core_is_waited_for():
    with OwnTime() as clock:
        begun, own = time.perf_counter(), clock.now()
        time.sleep(0.05)
        assert 0.04 < clock.now() - own <= time.perf_counter() - begun


def test_it_stands_still_while_others_have_the_core():
    """Four share one core: this one gets a part of the time, and its clock no more."""
    cores, others = os.sched_getaffinity(0), []
    try:
        os.sched_setaffinity(0, {min(cores)})
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
        with OwnTime() as clock:
            begun, own, busy = time.perf_counter(), clock.now(), time.thread_time()
            while time.thread_time() - busy < 0.2:
                pass
            whole, counted = time.perf_counter() - begun, clock.now() - own
        assert counted < 0.8 * whole
    finally:
        os.sched_setaffinity(0, cores)
        for one in others:
            one.kill()
            one.wait()


def test_where_nothing_counts_it_it_is_the_clock_on_the_wall(monkeypatch):
    monkeypatch.setattr(own_time, "_WAITED", "/nowhere")
    with OwnTime() as clock:
        begun = time.perf_counter()
        assert begun <= clock.now() <= time.perf_counter()
