"""Bugs planted into real code: one piece of a function's text for another, and word of whether it was reached."""

import __future__

import ast
import inspect
import textwrap
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Swap:
    """In a function of a class or module, one piece of its text for another."""

    owner: Any
    function: str
    right: str
    wrong: str

    def plant(self, monkeypatch, reached):
        """Put the wrong text in; whenever the statement with it is about to run, ``reached`` is called."""
        source = textwrap.dedent(inspect.getsource(getattr(self.owner, self.function)))
        assert source.count(self.right) == 1
        tree = ast.parse(source.replace(self.right, self.wrong))
        statements, place = _innermost(tree, line=source[: source.index(self.right)].count("\n") + 1)
        statements.insert(place, ast.parse("_reached()").body[0])
        file = f"<{self.function}, planted>"
        code = compile(ast.fix_missing_locations(tree), file, "exec", __future__.annotations.compiler_flag)
        space = dict(inspect.getmodule(self.owner).__dict__) | {"_reached": reached}
        exec(code, space)
        monkeypatch.setattr(self.owner, self.function, space[self.function])


def _innermost(tree, line):
    """Find the statement at a line: the list that has it, and its place there."""
    lists = [getattr(node, part, None) for node in ast.walk(tree) for part in ("body", "orelse")]
    found = [
        (statements, place)
        for statements in lists
        if isinstance(statements, list)
        for place, one in enumerate(statements)
        if one.lineno <= line <= one.end_lineno
    ]
    return max(found, key=lambda at: at[0][at[1]].lineno)
