"""The encoding of columns, written down with NumPy and Python alone: the twin of the compiled one."""

from itertools import pairwise

import numpy as np

from rewriting.errors import MalformedColumnsError

MOST_PRE = (1 << 31) - 2


def encode(columns):
    """Write columns as ``rewriting.columns`` describes it."""
    nodes = columns.nodes
    parts = [b"\x01", number(len(nodes))]
    if len(nodes):
        parts += [numbers(differences(nodes.pre)), numbers(nodes.span), numbers(nodes.level)]
        parts += [names(nodes), texts(nodes.vals, nodes.payload), texts(nodes.conts, nodes.payload)]
        parts.append(number(len(columns.lists)))
        for n, positions in sorted(columns.lists.items()):
            parts += [number(n), written(positions, len(nodes))]
    return b"".join(parts)


def number(n):
    parts = []
    while n >= 128:
        parts.append(n % 128 + 128)
        n //= 128
    return bytes((*parts, n))


def numbers(found):
    return b"".join(map(number, found.tolist()))


def differences(numbers):
    wide = numbers.astype(np.int64)
    return np.concatenate((wide[:1], np.diff(wide) - 1))


def names(nodes):
    used = sorted({nodes.labels[i] for i in nodes.label.tolist() if i >= 0})
    parts = [number(len(used))]
    for name in used:
        parts += [number(len(name.encode())), name.encode()]
    if used:
        parts.append(numbers(np.array([1 + used.index(nodes.labels[i]) if i >= 0 else 0 for i in nodes.label])))
    return b"".join(parts)


def texts(slices, payload):
    known = slices[0] >= 0
    found = [payload[start:end].tobytes() for start, end in slices[:, known].T.tolist()]
    lengths = np.where(known, slices[1] - slices[0] + 1, 0)
    return b"".join((number(len(found)), numbers(lengths), *found)) if found else number(0)


def written(positions, count):
    """Write positions among ``count`` nodes in the shortest way."""
    if len(positions) == count:
        return b"\x00"
    bits = np.zeros(count, np.uint8)
    bits[positions] = 1
    bitmap = np.packbits(bits).tobytes()
    listed = numbers(np.concatenate(([len(positions)], differences(positions))))
    return b"\x01" + bitmap if len(bitmap) <= len(listed) else b"\x02" + listed


def decode(data, max_level=256, max_lists=4096):
    """Read columns as plain lists; ``MalformedColumnsError`` for anything ``encode`` would not write."""
    return _Reader(data, max_level, max_lists).columns()


class _Reader:
    def __init__(self, data, max_level, max_lists):
        self.data, self.at, self.max_level, self.max_lists = data, 0, max_level, max_lists

    def refuse(self, wrong):
        if wrong:
            raise MalformedColumnsError("refused", self.at)

    def bytes(self, length):
        self.refuse(length > len(self.data) - self.at)
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, most):
        found, size, byte = 0, 0, 128
        while byte >= 128:
            byte = self.bytes(1)[0]
            found += (byte % 128) << (7 * size)
            size += 1
            self.refuse(size > 9)
        self.refuse(number(found) != self.data[self.at - size : self.at] or found > most)
        return found

    def columns(self):
        self.refuse(self.bytes(1) != b"\x01")
        count = self.number(len(self.data))
        if count == 0:
            self.refuse(self.at != len(self.data))
            return [], {}
        pre = (np.cumsum([self.number(MOST_PRE) + 1 for _ in range(count)]) - 1).tolist()
        self.refuse(pre[-1] > MOST_PRE)
        span = [self.number(MOST_PRE) for _ in range(count)]
        level = [self.number(self.max_level) for _ in range(count)]
        self.nesting(pre, span, level)
        labels = self.labels(count)
        vals, conts = self.texts(count), self.texts(count)
        lists = self.lists(count)
        self.refuse(self.at != len(self.data))
        return list(zip(pre, span, level, labels, vals, conts, strict=True)), lists

    def nesting(self, pre, span, level):
        above = []
        for p, s, depth in zip(pre, span, level, strict=True):
            self.refuse(p + s > MOST_PRE)
            while above and above[-1][0] < p:
                above.pop()
            self.refuse(bool(above) and (p + s > above[-1][0] or depth <= above[-1][1]))
            above.append((p + s, depth))

    def text(self, data):
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise MalformedColumnsError("refused", self.at) from None

    def labels(self, count):
        known = [self.text(self.bytes(self.number(len(self.data)))) for _ in range(self.number(len(self.data)))]
        self.refuse(any(a >= b for a, b in pairwise(known)))
        if not known:
            return [None] * count
        places = [self.number(len(known)) for _ in range(count)]
        self.refuse(len(set(places) - {0}) < len(known))
        return [known[i - 1] if i else None for i in places]

    def texts(self, count):
        given = self.number(count)
        if not given:
            return [None] * count
        lengths = [self.number(len(self.data)) for _ in range(count)]
        self.refuse(sum(length > 0 for length in lengths) != given)
        return [self.text(self.bytes(length - 1)) if length else None for length in lengths]

    def lists(self, count):
        found, last = {}, -1
        for _ in range(self.number(self.max_lists)):
            n = self.number(self.max_lists)
            self.refuse(n <= last)
            last, start = n, self.at
            way = self.bytes(1)[0]
            self.refuse(way > 2)
            if way == 0:
                found[n] = list(range(count))
            elif way == 1:
                bits = np.unpackbits(np.frombuffer(self.bytes(-(-count // 8)), np.uint8))
                self.refuse(bits[count:].any())
                found[n] = np.flatnonzero(bits).tolist()
            else:
                found[n] = (np.cumsum([self.number(count) + 1 for _ in range(self.number(count))]) - 1).tolist()
                self.refuse(bool(found[n]) and found[n][-1] >= count)
            self.refuse(written(np.array(found[n], np.int32), count) != self.data[start : self.at])
        return found
