"""What the package offers, and that it loads only what is asked for."""

from importlib import import_module

import pytest

import xmlmatch
from tests.processes import printed_by
from xmlmatch import errors
from xmlmatch.warm import warm


@pytest.mark.parametrize("name", xmlmatch.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(xmlmatch, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = xmlmatch.nothing_of_the_kind


def test_the_errors_load_without_the_compiler():
    code = "import sys, xmlmatch; xmlmatch.PatternError; print('numba' in sys.modules)"
    assert printed_by(code) == "False"


@pytest.mark.parametrize("name", [n for n in errors.__all__ if n != "XmlMatchError"])
def test_every_error_is_one_of_the_package(name):
    assert issubclass(getattr(errors, name), errors.XmlMatchError)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("atoms", "place_atoms"),
        ("atoms", "place_equal_atoms"),
        ("bodies", "_expand"),
        ("document", "_group"),
        ("namespaces", "_inherit"),
        ("rows", "_fill"),
        ("semijoin", "reduce_lists"),
        ("serialize", "_write"),
        ("set_algebra", "begin"),
        ("set_algebra", "match_bodies"),
        ("values", "_keep"),
        ("values", "_read"),
    ],
)
def test_warming_up_compiles_every_kernel_that_python_calls(module, name):
    warm()
    assert getattr(import_module(f"xmlmatch.{module}"), name).signatures
