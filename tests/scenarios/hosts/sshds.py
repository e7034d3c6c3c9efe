"""Machines reached by ssh: an sshd each in network namespaces, or without rights on loopback, with new keys."""

import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

from scenarios.hosts.links import Link
from scenarios.hosts.places import Loopback, namespaces
from scenarios.hosts.tunnels import NoNamespaces
from tests.processes import ROOT

SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
OPERATOR = "operator"
_IN_MOUNTS = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmpfs /run && mkdir /run/sshd && exec "$@"', "sh"]
"""As root sshd wants a folder that need not be there; where possible it gets one that nobody else sees."""


@contextmanager
def machines(names, folder):
    """Run an sshd for each name; yield the places; ``machines.txt`` in the folder lists them."""
    with ExitStack() as stack:
        try:
            places = stack.enter_context(namespaces([OPERATOR, *names], Link(rtt_ms=2), {}, 1))
        except NoNamespaces:
            places = Loopback()
        for key in ("host", "user"):
            making = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(making, check=True)
        config = folder / "ssh_config"
        config.write_text(f"UserKnownHostsFile {folder / 'known'}\nStrictHostKeyChecking accept-new\n")
        lines, command = [], f"{sys.executable} -m peer"
        for name in names:
            port = 22 if places.is_shaped else _free_port()
            stack.enter_context(_running(name, places, port, folder))
            kept = folder / f"at-{name}"
            kept.mkdir()
            lines.append(
                f"{places.address(name)} port={port} identity=user config=ssh_config folder={kept} "
                f"command='env PYTHONPATH={ROOT} {command}'"
            )
        (folder / "machines.txt").write_text("\n".join(lines))
        yield places


@contextmanager
def _running(name, places, port, folder):
    options = {
        "ListenAddress": places.address(name), "Port": port, "HostKey": folder / "host", "PidFile": "none",
        "AuthorizedKeysFile": folder / "user.pub", "StrictModes": "no", "UsePAM": "no",
        "PasswordAuthentication": "no", "PermitRootLogin": "yes",
    }  # fmt: skip
    command = [SSHD, "-D", "-e", "-f", "/dev/null", *(f"-o{key}={value}" for key, value in options.items())]
    if places.is_shaped:
        command = [*_IN_MOUNTS, *command]
    elif os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    with open(folder / f"{name}.sshd.log", "wb") as log:
        process = places.spawn(name, command, stdout=log, stderr=log)
    try:
        _await_listening(name, places, port, process)
        yield
    finally:
        process.terminate()
        process.wait()


def _await_listening(name, places, port, process):
    end = time.monotonic() + 60
    while True:
        assert process.poll() is None
        assert time.monotonic() < end
        try:
            places.call(name, lambda: socket.create_connection((places.address(name), port), 5).close())
        except ConnectionError:
            time.sleep(0.05)
        else:
            return


def _free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]
