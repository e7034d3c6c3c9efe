"""What the package offers, and that it is compiled at set-up."""

from importlib import import_module

import pytest

import rewriting
from rewriting import errors
from rewriting.warm import warm


@pytest.mark.parametrize("name", rewriting.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(rewriting, name).__name__ == name


@pytest.mark.parametrize(
    "name",
    [
        "NotCarriedError",
        "UnreadableContentError",
        "WrongColumnsError",
        "MissingViewError",
        "MalformedColumnsError",
    ],
)
def test_every_error_is_one_of_the_package(name):
    assert issubclass(getattr(errors, name), errors.RewritingError)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("at_once_kernels", "cut"),
        ("at_once_kernels", "join"),
        ("at_once_kernels", "look"),
        ("batch", "run"),
        ("candidate_table", "_place"),
        ("candidate_table", "_place_members"),
        ("column_reading", "read_lists"),
        ("column_reading", "read_nodes"),
        ("column_reading", "read_number"),
        ("column_writing", "write"),
        ("conditions", "_implied_in"),
        ("contents", "_scan"),
        ("fragment_kernels", "copy"),
        ("fragment_kernels", "enclose"),
        ("fragment_kernels", "lacking"),
        ("fragment_kernels", "select"),
        ("fragment_kernels", "unite"),
        ("graph", "_views_in_trie"),
        ("batch", "mark_changes"),
        ("scan", "queries_of"),
        ("scan", "sign"),
        ("scan", "views_of"),
        ("statistics", "_add"),
        ("statistics", "_set_sizes"),
        ("statistics", "link_cost"),
        ("statistics", "thinning"),
        ("trie", "_copied"),
        ("trie", "_fill"),
        ("trie", "_measure"),
    ],
)
def test_warming_up_compiles_every_kernel_that_python_calls(module, name):
    warm()
    assert getattr(import_module(f"rewriting.{module}"), name).signatures
