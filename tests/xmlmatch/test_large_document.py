"""A document of 20 MB: parsed in a bounded multiple of its size, with the nodes that lxml counts."""

import json

from tests.processes import printed_by

MEGABYTES = 20
# What parsing may add to the peak memory of the process, in multiples of the document's size. Limits says
# "about three times"; the buffers are sized from the bytes, the result is a copy of what was filled.
GREATEST_MULTIPLE = 4

SCRIPT = """
import collections, io, json
from lxml import etree
from scenarios.auction_documents import auction_document
from tests.processes import peak_bytes
from xmlmatch import Document, Pattern, match

Document.parse(auction_document(2, size_bytes=5_000)).index
data = auction_document(1, size_bytes={size})
before = peak_bytes()
document = Document.parse(data)
grown = peak_bytes() - before
counts = collections.Counter(document.label_of(i) for i in range(len(document)))
people = match(Pattern.parse('//person{{id}}[address]'), document).count()
expected, with_address = collections.Counter(), 0
for _, element in etree.iterparse(io.BytesIO(data)):
    expected[element.tag] += 1
    expected.update('@' + name for name in element.attrib)
    if element.tag == 'person':
        with_address += element.find('address') is not None
    if element.tag in ('item', 'person', 'open_auction', 'closed_auction', 'category'):
        element.clear(keep_tail=True)
print(json.dumps(dict(
    multiple=grown / len(data), size=len(data), same=counts == expected, nodes=len(document),
    people=people, with_address=with_address,
)))
"""


def test_a_document_of_20_megabytes_needs_a_bounded_multiple_of_its_size():
    told = json.loads(printed_by(SCRIPT.format(size=MEGABYTES * 1_000_000)))
    assert told["size"] > 0.9 * MEGABYTES * 1_000_000
    assert told["same"], told
    assert told["people"] == told["with_address"] > 100
    assert told["multiple"] < GREATEST_MULTIPLE
