"""Imports point one way only, and heavy or I/O packages stay where they belong."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Each package and the packages of ours it may import, from docs/architecture.md.
MAY_IMPORT = {
    "xmlmatch": set(),
    "rewriting": {"xmlmatch"},
    "planner": {"rewriting", "xmlmatch"},
    "overlay": {"rewriting"},
    "spark_planner": {"overlay", "planner", "rewriting", "xmlmatch"},
    "peer": {"overlay", "planner", "rewriting", "xmlmatch"},
    "scenarios": {"peer", "spark_planner", "overlay", "planner", "rewriting", "xmlmatch"},
    "distributary": {"peer", "rewriting", "xmlmatch"},
}
# Foreign packages that only some files may import.
ONLY_IN = {
    "pyspark": lambda path: path.parts[0] == "spark_planner",
    "ortools": lambda path: path == Path("planner/solver.py"),
    "trio": lambda path: path.parts[0] == "peer" or path.name.endswith("_driver.py"),
    "kademlia": lambda path: path.parts[0] in ("overlay", "peer"),
}


def imported(source):
    """List the top-level packages a source imports, anywhere in it."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.partition(".")[0] for name in names}


def violations(path, source):
    """List what a file imports and may not."""
    package = path.parts[0].removesuffix(".py")
    names = imported(source)
    wrong = [name for name in names & set(MAY_IMPORT) if name != package and name not in MAY_IMPORT[package]]
    wrong += [name for name, allowed in ONLY_IN.items() if name in names and not allowed(path)]
    return sorted(wrong)


def sources():
    files = [path for name in MAY_IMPORT for path in (ROOT / name).rglob("*.py")]
    return sorted(path.relative_to(ROOT) for path in [*files, ROOT / "distributary.py"])


def test_every_package_of_the_architecture_exists():
    assert [name for name in MAY_IMPORT if not (ROOT / name).is_dir()] == ["distributary"]


@pytest.mark.parametrize("path", sources(), ids=str)
def test_a_file_imports_only_what_it_may(path):
    assert violations(path, (ROOT / path).read_text()) == []


@pytest.mark.parametrize(
    ("path", "source", "wrong"),
    [
        ("xmlmatch/a.py", "from rewriting import x", ["rewriting"]),
        ("peer/a.py", "def f():\n    import scenarios.commands", ["scenarios"]),
        ("overlay/a.py", "import xmlmatch", ["xmlmatch"]),
        ("planner/lp.py", "from ortools.linear_solver import pywraplp", ["ortools"]),
        ("rewriting/a.py", "import trio", ["trio"]),
        ("scenarios/a.py", "import pyspark", ["pyspark"]),
        ("scenarios/a.py", "import peer, xmlmatch", []),
    ],
)
def test_a_forbidden_import_is_found(path, source, wrong):
    assert violations(Path(path), source) == wrong
