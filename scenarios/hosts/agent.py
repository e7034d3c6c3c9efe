"""What a run has on a machine that it reaches by ssh: it starts daemons, ends them, and hands out their stores.

It is told what to do by lines on standard input, one at a time, and answers each on standard output. Everything is
in one folder, which it makes and removes. It ends when its input does, or is silent for too long, or when it is
told to by a signal: daemons are ended then, and the folder is gone, so that a run that was killed, or whose
connection broke, leaves nothing behind. Daemons listen where they are told to; who runs the scenario talks to
their control sockets through ssh.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from overlay.identity import IdentityError
from scenarios.hosts.lines import Lines, Silence
from scenarios.hosts.places import Loopback
from scenarios.processes import DaemonFailed, running

if TYPE_CHECKING:
    from scenarios.processes import ProcessNetwork

SILENCE_S: Final = 180.0
"""The other side says something more often than that."""
READY_S: Final = 150.0
"""How long it may take until a daemon can be started: nothing is heard meanwhile, so less than ``SILENCE_S``."""
_CHUNK: Final = 1 << 18
_MOST_ASKED: Final = 64
"""One thing is asked at a time, besides signs of life."""
_FETCHED: Final = ("results.sqlite", "results.sqlite-wal")


class _Here(Loopback):
    """This machine, at an address of its own."""

    def __init__(self, address: str) -> None:
        self._address = address

    def address(self, host: str) -> str:
        """Return where daemons listen."""
        return self._address


def main(folder: str, address: str) -> int:
    """Do what lines say until there are no more: then ``SystemExit`` comes, by a signal of our own."""
    for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(one, _end)
    place = Path(folder)
    try:
        place.mkdir(mode=0o700)
    except OSError as exc:
        _say({"failed": f"{folder}: {exc.strerror}"})
        return 1
    try:
        with running(place, is_warm=True, places=_Here(address), ready_s=READY_S) as network:
            try:
                _say({"agent": version("distributary")})
                _serve(network)
            finally:
                for name in network.running:
                    network.kill(name)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return 0


def _end(*_: object) -> NoReturn:
    for one in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(one, signal.SIG_IGN)
    raise SystemExit(1)


def _serve(network: ProcessNetwork) -> NoReturn:
    lines: queue.Queue[bytes] = queue.Queue(_MOST_ASKED)
    threading.Thread(target=_listen, args=(lines,), daemon=True).start()
    while True:
        told = json.loads(lines.get())
        try:
            answer = _do(network, told.pop("do"), told)
        except (DaemonFailed, IdentityError, OSError) as exc:
            answer = {"failed": str(exc)}
        _say(answer)


def _listen(lines: queue.Queue[bytes]) -> None:
    """Take in lines; when there are no more, end everything, whatever it is waiting for."""
    heard = Lines(sys.stdin.fileno())
    with suppress(Silence):
        while line := heard.next(SILENCE_S):
            lines.put(line)
    os.kill(os.getpid(), signal.SIGTERM)


def _do(network: ProcessNetwork, do: str, told: dict[str, Any]) -> dict[str, Any]:
    name = told.get("name", "")
    match do:
        case "time":
            return {"time": time.time()}
        case "begin_source":
            network.begin_source(*told["options"])
        case "enrol":
            network.enrol(name, told["token"])
        case "begin_peer":
            network.begin_peer(name, *told["options"])
        case "await_ready":
            if not network.has_spoken(name, told["patience_s"]):
                return {"ready": None, "last_words": network.last_words(name)}
            return {"ready": network.await_ready(name)}
        case "kill":
            network.kill(name)
        case "stop":
            network.stop(name)
        case "signal":
            network.signal(name, told["signal"])
        case "ended":
            return {"ended": network.ended}
        case "fetch":
            return _fetch(network.folder, name)
        case _:
            raise OSError(f"this version does not know how to {do}")
    return {}


def _fetch(folder: Path, name: str) -> dict[str, Any]:
    """Send a daemon's store and log, each after a line that says how long it is."""
    for path in (*(folder / name / one for one in _FETCHED), folder / f"{name}.log"):
        if path.exists():
            with open(path, "rb") as file:
                rest = os.fstat(file.fileno()).st_size
                _say({"file": str(path.relative_to(folder)), "bytes": rest})
                while rest:
                    data = file.read(min(_CHUNK, rest))
                    sys.stdout.buffer.write(data)
                    rest -= len(data)
    return {}


def _say(line: dict[str, Any]) -> None:
    sys.stdout.buffer.write(json.dumps(line).encode() + b"\n")
    sys.stdout.buffer.flush()
