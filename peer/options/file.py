"""The configuration file: TOML with one key per option, for all daemons of a folder."""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

from peer.errors import CommandError
from peer.options.table import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

NAME: Final = "distributary.toml"
_MOST_BYTES: Final = 1 << 20


def read_file(path: Path) -> dict[str, list[str]]:
    """Return the texts that a file gives by option; ``CommandError`` if it is no such file."""
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise CommandError(f"{path}: larger than {_MOST_BYTES:,} bytes; this is no configuration")
    try:
        found = tomllib.loads(data.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise CommandError(f"{path}: not TOML: {exc}") from None
    known = {option.name: option for option in OPTIONS}
    for key, value in found.items():
        if isinstance(value, dict) and key not in known:
            why = (
                "there are no sections; write its options at the top of the file, they count for all daemons here"
            )
            raise CommandError(f"{path}: [{key}]: {why}")
        if key not in known:
            raise CommandError(f"{path}: {key}: no such option{suggestion(key, known)}")
    return {key: _texts(path, key, value, many=known[key].many) for key, value in found.items()}


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return what might have been meant, to go behind a refusal."""
    names = list(known)
    close = difflib.get_close_matches(word.replace("_", "-"), names, 1) or difflib.get_close_matches(
        word, names, 1
    )
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}"


def _texts(path: Path, key: str, value: Any, *, many: bool) -> list[str]:
    values = value if isinstance(value, list) else [value]
    if isinstance(value, list) and not many:
        raise CommandError(f"{path}: {key}: one value, not a list")
    for one in values:
        if isinstance(one, bool) or not isinstance(one, (str, int, float)):
            raise CommandError(f"{path}: {key}: expected text or a number, not {type(one).__name__}")
    return [str(one) for one in values]


def save(path: Path, key: str, text: str) -> None:
    """Set one option in a file, which is made if need be, and leave the rest of it as it is."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    read_file(path) if path.exists() else None
    line, pattern = (
        f"{key} = {text if text.isdecimal() else _quoted(text)}",
        re.compile(rf'\s*"?{re.escape(key)}"?\s*='),
    )
    at = [i for i, one in enumerate(lines) if pattern.match(one)]
    if at:
        lines[at[0]] = line
    else:
        lines.append(line)
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
    read_file(fresh)
    os.replace(fresh, path)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
