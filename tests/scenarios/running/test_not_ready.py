"""Daemons that do not get ready: a run says which, and where its log is, and leaves nothing."""

import os
import signal
import subprocess

import pytest

from peer.cli import main
from scenarios.hosts import agent
from scenarios.hosts.remote import RemoteNetwork
from scenarios.processes import READY_S, DaemonFailed, ProcessNetwork
from scenarios.running.stage import play
from scenarios.scenario_file import parse_scenario
from scenarios.warm_starts import WarmStarts
from tests.scenarios.leftovers import gone

TEXT = "title = 'stuck'\n[hosts]\ncount = 2\n[subscriptions]\ncount = 2\n[documents]\ncount = 20\nrate = 2\n"


@pytest.fixture
def stuck(monkeypatch):
    """Halt the daemon of a host as soon as it is started; what waits for it then has little patience."""
    begin, awaiting = ProcessNetwork.begin_peer, ProcessNetwork.await_ready

    def begin_peer(network, name, *options):
        begin(network, name, *options)
        if name == "h01":
            network.signal(name, signal.SIGSTOP)
            (network.folder / f"{name}.log").write_text("one line\nand its last words\n")

    def await_ready(network, name):
        network.ready_s = 0.5 if name == "h01" else READY_S
        return awaiting(network, name)

    monkeypatch.setattr(ProcessNetwork, "begin_peer", begin_peer)
    monkeypatch.setattr(ProcessNetwork, "await_ready", await_ready)


@pytest.mark.parametrize("out", [[], ["--out", "kept"]])
@pytest.mark.timeout(200)
def test_a_daemon_that_is_not_ready_in_time_ends_the_run_and_its_log_is_named(
    out, stuck, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARK", f"{tmp_path}/marked")
    (tmp_path / "stuck.toml").write_text(TEXT)
    assert main(["scenario", "run", "stuck.toml", "--hosts", "loopback", *out]) == 2
    [line] = [one for one in capsys.readouterr().err.splitlines() if one.startswith("distributary: ")]
    said, _, log = line.rstrip(")").partition(" (its log: ")
    assert said == "distributary: h01 was not ready within 0.5 s; and its last words"
    assert (tmp_path / log).read_text() == "one line\nand its last words\n"
    assert log.startswith("kept/hosts/" if out else "reports/stuck-")
    assert gone(f"{tmp_path}/marked") == []


@pytest.mark.timeout(200)
def test_a_host_that_joins_and_is_not_ready_in_time_is_a_violation_and_the_run_goes_on(stuck, tmp_path):
    text = TEXT.replace("count = 2\n[sub", "count = 1\n[sub") + "[[faults]]\nat = 0.5\njoin = 2\n"
    found = play(parse_scenario(text, "x"), "loopback", tmp_path, lambda _: None)
    [wrong] = [one for one in found["violations"] if "join" in one]
    assert wrong == "join 2 at 0.5 s failed: h01 was not ready within 0.5 s; and its last words"
    assert found["delivered"] == found["expected"] > 0


def test_a_daemon_that_says_half_a_line_and_no_more_is_not_ready(tmp_path):
    network = ProcessNetwork(tmp_path, ready_s=0.3)
    process = subprocess.Popen(["sh", "-c", "printf '{\"port\"'; exec sleep 600"], stdout=subprocess.PIPE)
    network._processes["h00"] = process
    try:
        with pytest.raises(DaemonFailed, match=r"^h00 was not ready within 0\.3 s; its log is empty$") as caught:
            network.await_ready("h00")
        assert caught.value.daemon == "h00"
    finally:
        network.kill("h00")


def test_a_process_that_never_gets_to_starting_daemons_is_not_waited_for(tmp_path):
    with WarmStarts() as warm:
        os.kill(warm._parent.pid, signal.SIGSTOP)
        network = ProcessNetwork(tmp_path, warm, ready_s=0.3)
        with pytest.raises(DaemonFailed, match=r"^h00 could not be started: .* not answered for 0\.3 s$"):
            network.begin_peer("h00")
        with pytest.raises(DaemonFailed, match=r"could not be started: .*Bad file descriptor"):
            network.begin_peer("h00")  # a late answer would be taken for its own
        warm._parent.kill()


def test_an_agent_does_nothing_for_longer_than_it_bears_silence():
    assert agent.READY_S < agent.SILENCE_S


class Answers:
    """Stands for a connection: it is asked, and answers what is said."""

    machine, clock_s, names = "10.0.0.1 (hosts.txt line 2)", 0.0, ["h00"]

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def call(self, do, **what):
        self.asked.append((do, what["name"], what["patience_s"] < agent.SILENCE_S))
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


NOT_YET = {"ready": None, "last_words": "loading"}


def test_a_machine_is_asked_again_and_again_whether_a_daemon_is_ready(tmp_path):
    connection = Answers(NOT_YET, NOT_YET, {"ready": {"port": 7}})
    assert RemoteNetwork(tmp_path, tmp_path, {"h00": connection}).await_ready("h00") == {"port": 7}
    assert connection.asked == [("await_ready", "h00", True)] * 3


def test_a_daemon_that_is_not_ready_at_a_machine_in_time_is_named_with_it(tmp_path):
    network = RemoteNetwork(tmp_path, tmp_path, {"h00": Answers(NOT_YET)})
    network.ready_s = 0.0
    with pytest.raises(DaemonFailed) as caught:
        network.await_ready("h00")
    assert str(caught.value) == "10.0.0.1 (hosts.txt line 2): h00 was not ready within 0 s; loading"
    assert caught.value.daemon == "h00"


def test_who_has_said_nothing_has_not_spoken_and_who_has_ended_has(tmp_path):
    network = ProcessNetwork(tmp_path)
    network._processes["h00"] = subprocess.Popen(["sleep", "600"], stdout=subprocess.PIPE)
    try:
        assert not network.has_spoken("h00", 0.0)
        network._processes["h00"].kill()
        assert network.has_spoken("h00", 60.0)
    finally:
        network.kill("h00")
