"""Kinds of values: how each is read from text, what is allowed, how it is shown. Text in, so that flags, variables
and files are read alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from overlay.identity.address import Address
from overlay.identity.errors import IdentityError

if TYPE_CHECKING:
    from collections.abc import Callable

_SECONDS: Final = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_BYTES: Final = {
    "": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12, "KiB": 1 << 10, "MiB": 1 << 20,
    "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip
_AMOUNT: Final = re.compile(r"(\d{1,18}(?:\.\d{1,9})?)\s*([A-Za-z%]*)")


@dataclass(frozen=True, slots=True)
class Kind:
    """``read`` raises ``ValueError`` for anything but what ``allowed`` says; it goes after "expected"."""

    metavar: str
    allowed: str
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str


def or_none(kind: Kind) -> Kind:
    """Allow ``none`` besides."""
    return Kind(
        kind.metavar,
        f"{kind.allowed}, or none",
        lambda text: None if text == "none" else kind.read(text),
        lambda value: "none" if value is None else kind.show(value),
    )


def _text(text: str) -> str:
    if not text or not text.isprintable():
        raise ValueError(text)
    return text


def integer(low: int, high: int, metavar: str = "N") -> Kind:
    """Whole numbers from ``low`` to ``high``."""

    def read(text: str) -> int:
        if not re.fullmatch(r"\d{1,18}", text) or not low <= int(text) <= high:
            raise ValueError(text)
        return int(text)

    return Kind(metavar, f"a whole number from {low:,} to {high:,}", read)


def one_of(*words: str) -> Kind:
    """One of some words."""

    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    return Kind("|".join(words), f"{', '.join(words[:-1])} or {words[-1]}", read)


def _amount(text: str, units: dict[str, Any]) -> float:
    found = _AMOUNT.fullmatch(text.strip())
    if found is None or found[2] not in units:
        raise ValueError(text)
    return float(found[1]) * float(units[found[2]])


def duration(low_s: float, high_s: float) -> Kind:
    """Times, as seconds.

    >>> duration(0.1, 1e6).read("90m"), duration(0.1, 1e6).show(5400.0)
    (5400.0, '90m')
    """

    def read(text: str) -> float:
        seconds = _amount(text, _SECONDS)
        if not low_s <= seconds <= high_s:
            raise ValueError(text)
        return seconds

    allowed = f"a time from {_show_seconds(low_s)} to {_show_seconds(high_s)}, such as 500ms, 3s, 5m, 1h or 7d"
    return Kind("TIME", allowed, read, _show_seconds)


def _show_seconds(seconds: float) -> str:
    for unit in ("d", "h", "m", "s"):
        count = seconds / _SECONDS[unit]
        if count >= 1 and count == int(count):
            return f"{int(count)}{unit}"
    return f"{seconds * 1000:g}ms" if seconds < 1 else f"{seconds:g}s"


def size(low: int, high: int) -> Kind:
    """Amounts of bytes.

    >>> size(0, 1 << 40).read("2 GB"), size(0, 1 << 40).show(1 << 30)
    (2000000000, '1GiB')
    """

    def read(text: str) -> int:
        found = int(_amount(text, _BYTES))
        if not low <= found <= high:
            raise ValueError(text)
        return found

    return Kind(
        "SIZE", f"a size from {_show_bytes(low)} to {_show_bytes(high)}, such as 64MiB or 10GB", read, _show_bytes
    )


def _show_bytes(count: int) -> str:
    for unit in ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB", "kB"):
        if count and count % _BYTES[unit] == 0:
            return f"{count // _BYTES[unit]}{unit}"
    return str(count)


def share(high: float) -> Kind:
    """Shares, written in percent.

    >>> share(10).read("20%"), share(10).show(0.2)
    (0.2, '20%')
    """

    def read(text: str) -> float:
        found = _amount(text, {"%": 0.01, "": 1.0})
        if not 0 < found <= high:
            raise ValueError(text)
        return found

    return Kind(
        "SHARE", f"a share above 0 and up to {high:.0%}, such as 20%", read, lambda value: f"{100 * value:g}%"
    )


def _address(text: str) -> Address:
    try:
        return Address.parse(text)
    except IdentityError as exc:
        raise ValueError(text) from exc


TEXT: Final = Kind("TEXT", "text without line ends", _text)
FOLDER: Final = Kind("DIR", "the path of a folder", _text)
HOST: Final = Kind("HOST", "a host name or an address of this machine", _text)
ADDRESS: Final = Kind("HOST:PORT", "host:port, or [host]:port for IPv6", _address)
