"""Signals come in where they can be borne, once."""

import os
import signal

import pytest

from scenarios.commands.interrupts import interrupts


def test_a_signal_waits_until_the_gate_is_open():
    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts() as gate:  # noqa: PT012
        os.kill(os.getpid(), signal.SIGTERM)
        steps.append("undisturbed")
        with gate.open():
            steps.append("never")
    assert steps == ["undisturbed"]


def test_what_the_first_signal_tears_down_no_other_disturbs():
    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts() as gate, gate.open():  # noqa: PT012
        try:
            os.kill(os.getpid(), signal.SIGINT)
            steps.append("never")
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGTERM)
            steps.append("torn down")
    assert steps == ["torn down"]


def test_a_signal_that_came_late_is_raised_at_the_end_and_handlers_are_put_back():
    before = signal.getsignal(signal.SIGTERM)
    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts():  # noqa: PT012
        os.kill(os.getpid(), signal.SIGINT)
        steps.append("done")
    assert steps == ["done"]
    assert signal.getsignal(signal.SIGTERM) is before
