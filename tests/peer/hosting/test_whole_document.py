"""Documents read from results in the quick way, and as columns."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from peer.hosting.results import DOCUMENTS, matched_alone, read_whole
from peer.hosting.whole_document import document_in
from rewriting.errors import RewritingError

_BODIES = (
    "<a/>",
    "<a x='1'><b>1</b><b>2</b></a>",
    "<ü>é</ü>",
    f"<{'n' * 200}>{'text ' * 100}</{'n' * 200}>",
    "<a>" + "<b/>" * 300 + "</a>",
)


def results_of(body):
    return matched_alone(DOCUMENTS, 7, "d", body.encode()).data


def slowly(data):
    """The same, read as columns; None where they are not one document's."""
    try:
        columns = read_whole(DOCUMENTS, data)
    except RewritingError:
        return None
    if not columns:
        return None
    start, end = columns.nodes.conts[:, 0].tolist()
    return columns.nodes.payload[start:end].tobytes()


@pytest.mark.parametrize("body", _BODIES)
def test_a_document_is_found_as_columns_find_it(body):
    data = results_of(body)
    assert document_in(data) == slowly(data) is not None


@given(st.sampled_from(_BODIES), st.data())
def test_whatever_is_found_in_wrong_bytes_columns_find_too(body, data):
    wrong = bytearray(results_of(body))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(wrong) - 1) | st.integers(0, min(14, len(wrong) - 1)))
        what = data.draw(st.sampled_from(["change", "drop", "add"]))
        byte = data.draw(st.integers(0, 255) | st.sampled_from([0, 1, 2, 127, 128, 129, 255]))
        if what == "change":
            wrong[at] = byte
        elif what == "drop" and len(wrong) > 1:
            del wrong[at]
        else:
            wrong.insert(at, byte)
    found = document_in(bytes(wrong))
    assert found is None or found == slowly(bytes(wrong))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("010100 8000 0001 0161 010001 053c612f3e 010000", "a number in more bytes than it needs"),
        ("010100 ffffffff7f 0001 0161 010001 053c612f3e 010000", "it reaches too far"),
        ("010100 00 0001 01ff 010001 053c612f3e 010000", "a name that is no text"),
        ("010100 00 0001 0161 010001 05ff612f3e 010000", "a content that is no text"),
        ("010100 00 0001 0161 010001 063c612f3e 010000", "a content that is too short"),
        ("010100 00 0001 0161 010001", "it ends early"),
    ],
)
def test_what_columns_refuse_is_not_found(wrong, why):
    data = bytes.fromhex(wrong)
    assert slowly(data) is None, why
    assert document_in(data) is None, why
