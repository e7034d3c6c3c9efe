"""Finds a Java that can run Spark, by starting it.

A path that looks right proves nothing: macOS ships a ``java`` that only says where to get one, JAVA_HOME may
name a version removed long ago, and a reduced runtime may lack a module that Spark asks for. So every
candidate is started with the option that Spark itself passes, and the first new enough to answer is taken.

Standard library only, and no import from this package: ``bootstrap.py`` loads this file by its path, before
anything is installed.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OLDEST_JAVA: Final = 17

JAVA_MISSING: Final = (
    f"Java {OLDEST_JAVA} or newer is needed and none was found; install one (Debian, Ubuntu: apt-get install "
    "openjdk-17-jre-headless; macOS: brew install openjdk@17), or name it in JAVA_HOME, or in a checkout "
    "run: python3 bootstrap.py --java"
)

VECTOR_MODULE: Final = "jdk.incubator.vector"
"""The module that Spark always asks for; a Java without it does not start under Spark."""

_START_LIMIT_S: Final = 30  # a Java machine on a busy computer takes a second or two; a hanging one is no use
_HOMEBREW_PREFIXES: Final = ("/opt/homebrew", "/usr/local")
_HOMEBREW_FORMULAE: Final = ("openjdk@17", "openjdk@21", "openjdk")


@dataclass(frozen=True, slots=True)
class JavaHome:
    """A Java that was started: the folder to set JAVA_HOME to, and its major version."""

    path: Path
    major: int


def find_java(environ: Mapping[str, str] | None = None, *, venv: Path | None = None) -> JavaHome | None:
    """Return the first Java that starts and is new enough, or ``None``.

    Looks at JAVA_HOME, then PATH, then where macOS and Homebrew keep Java, and last at the ``java`` folder
    that ``bootstrap.py --java`` makes in the virtual environment. ``environ`` and ``venv`` default to those
    of this process.
    """
    environ = os.environ if environ is None else environ
    for executable, home in _candidates(environ, Path(sys.prefix) if venv is None else venv):
        java = _start(executable, home)
        if java is not None and java.major >= OLDEST_JAVA:
            return java
    return None


def _candidates(environ: Mapping[str, str], venv: Path) -> Iterator[tuple[Path, Path | None]]:
    """Yield executables in order of preference, each with its home where the place tells it."""
    homes = [Path(environ["JAVA_HOME"])] if environ.get("JAVA_HOME") else []
    yield from ((home / "bin" / "java", home) for home in homes)
    on_path = shutil.which("java", path=environ.get("PATH", os.defpath))
    if on_path is not None:
        yield Path(on_path), None
    yield from ((home / "bin" / "java", home) for home in _macos_homes())
    yield venv / "java" / "bin" / "java", venv / "java"


def _macos_homes() -> Iterator[Path]:
    tool = Path("/usr/libexec/java_home")
    if tool.exists():
        answer = _output(str(tool), "-v", f"{OLDEST_JAVA}+")
        if answer is not None:
            yield Path(answer.strip())
    for prefix in _HOMEBREW_PREFIXES:
        for formula in _HOMEBREW_FORMULAE:
            yield Path(prefix, "opt", formula, "libexec", "openjdk.jdk", "Contents", "Home")


def _start(executable: Path, home: Path | None) -> JavaHome | None:
    """Start ``executable`` as Spark would; return what it says of itself, or ``None`` if it fails."""
    said = _output(str(executable), f"--add-modules={VECTOR_MODULE}", "-XshowSettings:properties", "-version")
    return None if said is None else parse_settings(said, home)


def parse_settings(said: str, home: Path | None = None) -> JavaHome | None:
    """Read what ``java -XshowSettings:properties`` prints; a known ``home`` wins over the printed one.

    >>> parse_settings("    java.home = /opt/jre\\n    java.specification.version = 21\\n")
    JavaHome(path=PosixPath('/opt/jre'), major=21)
    >>> parse_settings("    java.home = /opt/old\\n    java.specification.version = 1.8\\n").major
    8
    """
    pairs = re.findall(r"^\s*(java\.home|java\.specification\.version) = (.*?)\s*$", said, re.MULTILINE)
    properties = dict(pairs)
    version = re.match(r"(?:1\.)?(\d+)", properties.get("java.specification.version", ""))
    if version is None or (home is None and "java.home" not in properties):
        return None
    return JavaHome(home or Path(properties["java.home"]), int(version[1]))


def _output(*command: str) -> str | None:
    """Run a command and return all it printed, or ``None`` if it cannot be started, fails or hangs."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_START_LIMIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode(errors="replace")
