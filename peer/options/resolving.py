"""Which value of an option is in force: a flag's, else the environment's, else the file's, else the default."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from peer.errors import CommandError
from peer.home import VARIABLE, add_home, home_of
from peer.options.file import NAME, read_file, suggestion
from peer.options.table import OPTIONS, options_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from peer.options.table import Option

_CONFIG = "DISTRIBUTARY_CONFIG"


class Found(NamedTuple):
    """A value, and where it comes from."""

    value: Any
    origin: str


class Settings:
    """The values in force of one daemon, by the names of options."""

    def __init__(self, daemon: str, found: Mapping[str, Found]) -> None:
        self.daemon, self.found = daemon, found

    def __getitem__(self, name: str) -> Any:
        return self.found[name].value

    def shown(self) -> list[tuple[str, str, str]]:
        """List name, value and origin, as they are shown."""
        rows = []
        for option in options_of(self.daemon):
            value, origin = self.found[option.name]
            text = ", ".join(map(option.kind.show, value)) or "none" if option.many else option.kind.show(value)
            rows.append((option.name, text, origin))
        return rows


def add_options(parser: argparse.ArgumentParser, daemon: str) -> None:
    """Declare the flags of a daemon, ``--home`` and ``--config``."""
    add_home(parser)
    parser.add_argument(
        "--config",
        metavar="FILE",
        help=f"a file with options (default: ${_CONFIG}, or {NAME} in the home if there)",
    )
    for option in options_of(daemon):
        parser.add_argument(
            f"--{option.name}",
            metavar=option.kind.metavar,
            action="append" if option.many else "store",
            help=f"{option.help} ({option.shown_default(daemon)})".replace("%", "%%"),
        )


def resolve(daemon: str, arguments: argparse.Namespace, environment: Mapping[str, str] | None = None) -> Settings:
    """Return the values in force; ``CommandError`` names the first that is not allowed, and where it stands."""
    variables = os.environ if environment is None else environment
    path, texts = _file(arguments, variables)
    _warn(variables)
    found = {}
    for option in options_of(daemon):
        flag = getattr(arguments, option.name.replace("-", "_"))
        if flag is not None:
            given, where, origin = ([flag] if isinstance(flag, str) else flag), f"--{option.name}", "flag"
        elif option.variable in variables:
            text = variables[option.variable]
            given, where, origin = (
                (text.split(",") if option.many else [text]),
                f"${option.variable}",
                "environment",
            )
        elif option.name in texts:
            given, where, origin = texts[option.name], f"{path}: {option.name}", str(path)
        else:
            found[option.name] = Found(option.defaults[daemon], "default")
            continue
        found[option.name] = Found(_read(option, given, where), origin)
    return Settings(daemon, found)


def _read(option: Option, given: Sequence[str], where: str) -> Any:
    values = []
    for text in given:
        try:
            values.append(option.kind.read(text.strip()))
        except ValueError:
            raise CommandError(f"{where}: {text!r}: expected {option.kind.allowed}") from None
    return tuple(values) if option.many else values[0]


def _file(arguments: argparse.Namespace, variables: Mapping[str, str]) -> tuple[Path, dict[str, list[str]]]:
    named = arguments.config or variables.get(_CONFIG)
    path = Path(named).expanduser() if named else home_of(arguments) / NAME
    return path, read_file(path) if named or path.exists() else {}


def _warn(variables: Mapping[str, str]) -> None:
    """Say which variables look like options and are none: a typing error would go unnoticed."""
    known = {option.variable: option for option in OPTIONS}
    for name in sorted(variables):
        if name.startswith("DISTRIBUTARY_") and name not in known and name not in (VARIABLE, _CONFIG):
            print(f"distributary: warning: ${name} is no option{suggestion(name, known)}", file=sys.stderr)
