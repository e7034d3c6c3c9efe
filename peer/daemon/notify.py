"""Telling the service manager how the daemon stands: datagrams to the socket that systemd names (sd_notify).

A service of ``Type=notify`` counts as started with ``READY=1``; with ``WatchdogSec`` it is restarted if it does
not say ``WATCHDOG=1`` in time. Without a service manager nothing is said to anybody.
"""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, Final

import trio

if TYPE_CHECKING:
    from collections.abc import Mapping

_LOG: Final = logging.getLogger("distributary.service")


class Notifier:
    """Talks to the service manager that an environment names."""

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        variables = os.environ if environment is None else environment
        path = variables.get("NOTIFY_SOCKET", "")
        self._path = f"\0{path[1:]}" if path.startswith("@") else path  # a name beside the file system, on Linux
        self.watchdog_s = _watchdog_s(variables) if path else None

    def say(self, *lines: str) -> bool:
        """Say something, such as ``READY=1``; False if nobody listens. Never waits."""
        if not self._path:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                out.setblocking(False)
                out.sendto("\n".join(lines).encode(), self._path)
        except OSError as exc:
            _LOG.warning("service manager", extra={"reason": str(exc), "said": lines[0]})
            return False
        return True

    async def keep_alive(self) -> None:
        """Say that the event loop still turns, twice as often as is asked for, until cancelled."""
        while self.watchdog_s is not None:
            self.say("WATCHDOG=1")
            await trio.sleep(self.watchdog_s / 2)


def _watchdog_s(variables: Mapping[str, str]) -> float | None:
    """Return how often the manager wants to hear something; None if it does not ask, or asks another process."""
    every, process = variables.get("WATCHDOG_USEC", ""), variables.get("WATCHDOG_PID", "")
    if not every.isdecimal() or int(every) == 0 or (process and process != str(os.getpid())):
        return None
    return int(every) / 1e6
