"""Giving back what only the start needed: less memory, and everything goes on."""

import subprocess
import sys

from peer.giving_back import unchanged

_SMAPS = """\
7f00-7f10 r-xp 00000000 fe:00 12 /x/libllvmlite.so
Rss: 40 kB
Anonymous: 0 kB
7f10-7f20 r--p 00010000 fe:00 12 /x/libllvmlite.so
Rss: 40 kB
Anonymous: 4 kB
7f20-7f30 rw-p 00020000 fe:00 12 /x/libllvmlite.so
Anonymous: 0 kB
7f30-7f40 r-xp 00000000 fe:00 13 /x/libc.so
Anonymous: 0 kB
7f40-7f50 rw-p 00000000 00:00 0
Anonymous: 0 kB
7f50-7f60 r--p 00030000 fe:00 12 /x/libllvmlite.so
Rss: 0 kB
Anonymous: 0 kB
"""

_PROGRAM = """
from peer.giving_back import give_back_compiler
from peer.warm import warm_peer

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

warm_peer()
before = resident()
given = give_back_compiler()
after = resident()
import numba
print(given > 0, before - after > 20e6, numba.njit(lambda x: x + 1)(1))
warm_peer()
"""


def test_only_what_the_file_still_holds_is_given_back():
    assert list(unchanged(_SMAPS.splitlines(), "libllvmlite")) == [(0x7F00, 0x7F10), (0x7F50, 0x7F60)]


def test_memory_shrinks_and_compiling_still_works():
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "2"]
