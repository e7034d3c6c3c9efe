"""Units for systemd: a hardened service per daemon. The files in ``packaging/`` are these, for /usr/local/bin."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Final

DAEMONS: Final = ("source", "peer", "planner")
USUAL: Final = "/usr/local/bin/distributary"
_WHAT: Final = {
    "source": "the source: numbers documents, keeps the log, signs who feeds whom",
    "peer": "a subscriber's machine: receives, stores, and feeds others",
    "planner": "the planner: plans anew who feeds whom",
}
_AFTER: Final = {
    "source": "network-online.target",
    "peer": "network-online.target",
    "planner": "network-online.target distributary-source.service distributary-peer.service",
}
_UNIT: Final = """\
# distributary: {what}.
# Printed by 'distributary service --print {daemon}'; docs/operations.md says how to install it.
[Unit]
Description=distributary, {what}
Wants=network-online.target
After={after}
StartLimitIntervalSec=10min
StartLimitBurst=20

[Service]
Type=notify
ExecStart={executable} {daemon} run
# Options: {home}/distributary.toml, or here as DISTRIBUTARY_PORT=7411 and so on (docs/configuration.md).
Environment=DISTRIBUTARY_HOME={state}
# The code cannot be written, so compiled kernels lie here; they begin with what was compiled beside the code.
Environment=NUMBA_CACHE_DIR={state}/kernels
# Without compiled kernels the first start compiles them, which takes minutes on a slow machine.
TimeoutStartSec=15min
WatchdogSec=2min
TimeoutStopSec=30s
# One for each connection: machines, clients, and strangers, of whom few are let wait.
LimitNOFILE=65536
Restart=on-failure
RestartSec=2s

# One user for all daemons of this home, made when the first starts.
DynamicUser=yes
User=distributary
StateDirectory=distributary
StateDirectoryMode=0700
UMask=0077

NoNewPrivileges=yes
CapabilityBoundingSet=
AmbientCapabilities=
ProtectSystem=strict
ProtectHome={protect_home}
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectProc=invisible
RemoveIPC=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
KeyringMode=private
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM
# Not MemoryDenyWriteExecute: kernels (and Spark's Java) are compiled in memory.

[Install]
WantedBy=multi-user.target
"""


def unit_name(daemon: str) -> str:
    """Return the name of a daemon's unit."""
    return f"distributary-{daemon}.service"


def unit(daemon: str, executable: str = USUAL) -> str:
    """Return a unit that runs a daemon by this executable, which must be a path of systemd's machine."""
    # Code below a home folder stays readable; elsewhere no home folder is seen at all.
    in_home = any(PurePosixPath(executable).is_relative_to(top) for top in ("/home", "/root", "/run/user"))
    return _UNIT.format(
        daemon=daemon, what=_WHAT[daemon], after=_AFTER[daemon], executable=_escaped(executable),
        state="%S/distributary", home="/var/lib/distributary", protect_home="read-only" if in_home else "yes",
    )  # fmt: skip


def _escaped(path: str) -> str:
    """Write a path as systemd reads it.

    >>> _escaped("/opt/a b/50%/distributary")
    '"/opt/a b/50%%/distributary"'
    """
    text = path.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return (
        text
        if text.replace("%%", "").replace("/", "").replace("-", "").replace(".", "").isalnum()
        else f'"{text}"'
    )
