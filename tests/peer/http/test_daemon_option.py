"""``--http`` of a daemon that runs as a process."""

import json
import socket
import subprocess
import sys
from datetime import UTC, datetime

import pytest
import trio

from overlay.identity import create_network
from peer.http.access import TOKEN_FILE
from tests.peer.http.client import ask


def run(home, *options):
    command = [
        sys.executable,
        "-m",
        "peer",
        "source",
        "run",
        "--home",
        home,
        "--port",
        "0",
        "--enrolment-port",
        "0",
    ]
    return subprocess.Popen([*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def home(tmp_path):
    create_network(tmp_path / "home", "test", datetime.now(UTC))
    return tmp_path / "home"


async def test_the_ready_line_tells_the_port_and_the_token_lies_in_the_home_folder(home):
    with run(home, "--http", "0", "--json") as process:
        try:
            ready = json.loads(await trio.to_thread.run_sync(process.stdout.readline))
            token = (home / TOKEN_FILE).read_text().strip()
            assert (await ask(ready["http_port"], "/healthz")).json["role"] == "source"
            assert (await ask(ready["http_port"], "/publish", method="POST", body=b"<r/>")).status == 401
            told = await ask(ready["http_port"], "/publish", method="POST", token=token, body=b"<r/>")
            assert (told.status, told.json["is_new"]) == (201, True)
        finally:
            process.terminate()
            assert process.wait(120) == 0


def test_a_port_that_is_taken_is_said_in_one_line(home):
    with socket.create_server(("127.0.0.1", 0)) as other:
        process = run(home, "--http", str(other.getsockname()[1]))
        _, err = process.communicate(timeout=240)
    lines = err.decode().splitlines()
    assert (process.returncode, lines[-1].startswith("distributary: "), "in use" in lines[-1]) == (2, True, True)
    assert "Traceback" not in err.decode()
