"""Text that is no UTF-8 is refused wherever something is read, like anything else that is wrong."""

import msgspec
import pytest
import trio

from overlay.content import frames as content
from overlay.content.errors import MalformedContent
from overlay.content.journal import Takes, decode_record, encode_record
from overlay.payloads.payload import BadPayload, put_back, take_out
from overlay.wire import frames
from overlay.wire.errors import MalformedFrame
from overlay.zones.errors import MalformedZone
from overlay.zones.records import ZoneRecord, decode_zone_untrusted, encode_zone
from peer.daemon import requests
from peer.daemon.declared import Declared, decode_declared, encode_declared
from peer.daemon.questions import NoAnswer, Questions
from rewriting.filters import Dimension, Space

SPACE = Space("zz", (Dimension("price", low=0, high=9),))
PLACES = {
    "a frame": (frames.encode_body(frames.Bye("zz")), frames.decode_untrusted, MalformedFrame),
    "a content frame": (
        content.encode(content.Done(7, "01", ("01",), ("zz",))), content.decode_untrusted, MalformedContent,
    ),
    "a journal": (encode_record(Takes("zz", True)), decode_record, MalformedContent),
    "a zone": (encode_zone(ZoneRecord(1, -1, 0.0, "zz", 1)), decode_zone_untrusted, MalformedZone),
    "a payload": (take_out({"a": "zz"}, ["a"])[1], lambda data: put_back({}, data), BadPayload),
    "a space": (encode_declared(Declared(SPACE, 17)), decode_declared, NoAnswer),
    "a request": (
        msgspec.msgpack.encode({"site": "zz"}), lambda data: requests.read(data, requests.Where), NoAnswer,
    ),
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
def test_text_that_is_no_utf_8_is_refused_as_what_is_malformed(place):
    data, read, error = PLACES[place]
    read(data)
    assert data.count(b"zz") == 1
    with pytest.raises(error):
        read(data.replace(b"zz", b"\xff\xfe"))


async def test_an_answer_that_is_no_utf_8_is_no_answer():
    def send(site, question):
        questions.answered(site, frames.Answer(question.question, ok=True, body=b"\xa2\xff\xfe"))
        return True

    questions = Questions(send)
    with trio.fail_after(5), pytest.raises(NoAnswer, match="the answer of p1 cannot be read"):
        await questions.ask("p1", "what", None)
