"""Networks of their own for hosts (Linux, root): a namespace each, with one tunnel device whose packets we carry.

A namespace has no name and lives as long as somebody holds it, so nothing is left behind, however a run ends.
Threads enter namespaces, never the whole process.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import subprocess
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

_CLONE_NEWNET: Final = 0x40000000
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN: Final = 0x0001
_IFF_NO_PI: Final = 0x1000
MTU: Final = 9000
"""Of a tunnel: large packets cost the switch less; a loss takes more with it."""
PREFIX: Final = "10.213"
_MOST: Final = 254 * 250

Found = TypeVar("Found")


class NoNamespaces(Exception):
    """This machine, or this user, cannot make network namespaces; the message says why and what to do."""


@dataclass(slots=True)
class Tunnel:
    """A host's namespace and its device: two open files."""

    host: str
    address: str
    namespace: int
    device: int

    def close(self) -> None:
        """Let the namespace go; processes in it keep it until they end."""
        os.close(self.device)
        os.close(self.namespace)

    def enter(self) -> None:
        """Move the calling thread into the namespace."""
        enter_namespace(self.namespace)


def address_of(number: int) -> str:
    """Return the address of the host with a number from 0.

    >>> address_of(0), address_of(300)
    ('10.213.0.1', '10.213.1.51')
    """
    if not 0 <= number < _MOST:
        raise NoNamespaces(f"at most {_MOST:,} hosts")
    return f"{PREFIX}.{number // 250}.{number % 250 + 1}"


def open_tunnel(host: str, number: int) -> Tunnel:
    """Make a namespace with one device, which is up; ``NoNamespaces`` if that cannot be."""

    def make() -> Tunnel:
        _call("unshare", _CLONE_NEWNET)
        namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", b"wan0", _IFF_TUN | _IFF_NO_PI))
        address = address_of(number)
        for words in (
            ("link", "set", "lo", "up"),
            ("address", "add", f"{address}/16", "dev", "wan0"),
            ("link", "set", "wan0", "mtu", str(MTU), "up"),
        ):
            subprocess.run(["ip", *words], check=True, capture_output=True)
        return Tunnel(host, address, namespace, device)

    try:
        return in_thread(make)
    except PermissionError:
        raise NoNamespaces(
            "network namespaces need root; run as root, or on loopback with --hosts loopback"
        ) from None
    except FileNotFoundError as exc:
        raise NoNamespaces(f"{exc.filename} is not there; run on loopback with --hosts loopback") from None
    except (OSError, subprocess.CalledProcessError) as exc:
        raise NoNamespaces(
            f"this machine cannot make one ({exc}); run on loopback with --hosts loopback"
        ) from None


def enter_namespace(namespace: int) -> None:
    """Move the calling thread into a network namespace, given as an open file."""
    _call("setns", namespace, _CLONE_NEWNET)


def in_thread(function: Callable[[], Found]) -> Found:
    """Call a function in a thread of its own, which then ends with whatever it has entered."""
    found: list[Found] = []
    raised: list[BaseException] = []

    def call() -> None:
        try:
            found.append(function())
        except BaseException as exc:  # handed to the caller below
            raised.append(exc)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]


def _call(name: str, *arguments: int) -> None:
    """Call the C library; Python 3.11 has no ``os.setns`` and no ``os.unshare``."""
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
