"""Hosts files: the machines that a scenario may use over ssh, one per line.

A line is an address, as ssh takes it, and settings ``name=value``; ``#`` begins a comment. ``docs/scenarios.md``
lists the settings.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_SETTINGS: Final = ("user", "port", "identity", "config", "inside", "folder", "command")
_MOST_PORT: Final = 65_535
_LONGEST_FOLDER: Final = 60
"""Sockets lie in the folder, and the paths of sockets are short."""
_MOST_BYTES: Final = 1 << 20


class BadHosts(Exception):
    """A hosts file that cannot be used; the message says which line, and what is wrong."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A line of the file. ``inside``: where its daemons listen and the others reach them; ``folder``: below which
    a folder is made for the run; ``command``: how distributary is started there."""

    where: str
    address: str
    user: str | None = None
    port: int | None = None
    identity: str | None = None
    config: str | None = None
    inside: str = ""
    folder: str = "/tmp"
    command: tuple[str, ...] = ("distributary",)

    def __str__(self) -> str:
        """Name it as ssh would, and its line."""
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f":{self.port}"
        return f"{user}{self.address}{port} ({self.where})"

    @property
    def options(self) -> list[str]:
        """What ssh is told about it."""
        given = (("-l", self.user), ("-p", self.port), ("-i", self.identity), ("-F", self.config))
        found = [word for flag, value in given if value is not None for word in (flag, str(value))]
        return found + (["-o", "IdentitiesOnly=yes"] if self.identity is not None else [])


def read_hosts(path: Path) -> list[Machine]:
    """Read a file; ``BadHosts`` says what is wrong."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise BadHosts(f"{path}: longer than {_MOST_BYTES:,} bytes; one line per machine is expected")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise BadHosts(f"{path}: {exc.strerror if isinstance(exc, OSError) else 'not UTF-8'}") from None
    return parse_hosts(text, path.name, path.parent)


def parse_hosts(text: str, name: str, folder: Path) -> list[Machine]:
    """Read the text of a file; paths in it count from the folder.

    >>> [machine] = parse_hosts("10.0.0.1 user=ann port=2222  # the fast one", "hosts.txt", Path("."))
    >>> str(machine), machine.options
    ('ann@10.0.0.1:2222 (hosts.txt line 1)', ['-l', 'ann', '-p', '2222'])
    >>> parse_hosts("\\n10.0.0.1 port=ssh", "hosts.txt", Path("."))
    Traceback (most recent call last):
    scenarios.hosts.hosts_file.BadHosts: hosts.txt line 2: port=ssh: expected a number from 1 to 65535
    """
    found: list[Machine] = []
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{name} line {number}"
        try:
            words = shlex.split(line, comments=True)
        except ValueError as exc:
            raise BadHosts(f"{where}: {exc}; check the quotes") from None
        if words:
            found.append(_machine(words, where, folder))
    if not found:
        raise BadHosts(f"{name}: names no machine; write one address per line")
    return found


def deal(machines: Sequence[Machine], source: str, hosts: Sequence[str]) -> dict[str, Machine]:
    """Say which machine is whose: the first is the source's, the hosts take the others in turn; one alone is
    everybody's."""
    others = machines[1:] or machines
    return {source: machines[0]} | {host: others[i % len(others)] for i, host in enumerate(hosts)}


def _machine(words: list[str], where: str, folder: Path) -> Machine:
    address, *rest = words
    if "=" in address or address.startswith("-"):
        raise BadHosts(f"{where}: a line begins with an address, and this one with {address}")
    user, at, plain = address.rpartition("@")
    given: dict[str, str] = {"user": user} if at else {}
    for word in rest:
        name, is_set, value = word.partition("=")
        if name not in _SETTINGS or not is_set:
            raise BadHosts(f"{where}: {word}: expected one of {', '.join(f'{one}=' for one in _SETTINGS)}")
        if name in given:
            raise BadHosts(f"{where}: {name} is said twice")
        if not value:
            raise BadHosts(f"{where}: {name}= says nothing")
        given[name] = value
    if not plain or (at and not user) or given.get("user", "").startswith("-"):
        raise BadHosts(f"{where}: {address}: expected an address, or user@address")
    port = given.get("port")
    if port is not None and not (port.isascii() and port.isdigit() and 1 <= int(port) <= _MOST_PORT):
        raise BadHosts(f"{where}: port={port}: expected a number from 1 to {_MOST_PORT}")
    kept = given.get("folder", "/tmp")
    if not kept.startswith("/") or len(kept) > _LONGEST_FOLDER:
        raise BadHosts(f"{where}: folder={kept}: expected a path from / on, of {_LONGEST_FOLDER} letters at most")
    return Machine(
        where, plain, given.get("user"), None if port is None else int(port),
        _file(given, "identity", where, folder), _file(given, "config", where, folder),
        given.get("inside", plain), kept.rstrip("/"),
        tuple(_words(given.get("command", "distributary"), where)),
    )  # fmt: skip


def _file(given: dict[str, str], name: str, where: str, folder: Path) -> str | None:
    if name not in given:
        return None
    path = folder / Path(given[name]).expanduser()
    if not path.is_file():
        raise BadHosts(f"{where}: {name}={given[name]}: there is no such file")
    return str(path.absolute())


def _words(command: str, where: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as exc:
        raise BadHosts(f"{where}: command={command}: {exc}") from None
