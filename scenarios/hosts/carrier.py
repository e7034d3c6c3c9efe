"""The process that carries packets between tunnels: ``python -m scenarios.hosts.carrier``.

Its first line of input says which open file is whose device, and the links; every further line changes the links
and is answered with the counts so far. It ends when its input does, so it never outlives the run.
"""

from __future__ import annotations

import ipaddress
import json
import os
import random
import select
import sys
import time
from dataclasses import asdict
from typing import Any, Final

from scenarios.hosts.links import Link, Links
from scenarios.hosts.switch import Switch

_MOST_PACKETS: Final = 64
_IPV4: Final = 4


def change(links: Links, told: dict[str, Any]) -> None:
    """Do what a line says to the links."""
    match told["do"]:
        case "shape":
            pairs = {(one, other): Link(**link) for one, other, link in told["pairs"]}
            links.shape(Link(**told["link"]), pairs, told["cuts"])
        case "count":
            pass
        case other:
            raise ValueError(f"nobody here knows about {other}")


def main() -> None:
    """Carry until the input ends."""
    first = json.loads(sys.stdin.buffer.readline())
    links = Links()
    change(links, first)
    switch = Switch(links, random.Random(first["seed"]))
    by_address = {ipaddress.IPv4Address(where).packed: host for host, (_, where) in first["hosts"].items()}
    devices = {host: device for host, (device, _) in first["hosts"].items()}
    by_device = {device: host for host, device in devices.items()}
    poll = select.epoll()
    for device in by_device:
        poll.register(device, select.EPOLLIN)
    commands = sys.stdin.fileno()
    os.set_blocking(commands, False)
    poll.register(commands, select.EPOLLIN)
    sys.stdout.write("{}\n")
    sys.stdout.flush()
    rest = b""
    while True:
        next_at = switch.next_at
        timeout = -1.0 if next_at is None else max(0.0, next_at - time.monotonic())
        for ready, _ in poll.poll(timeout):
            if ready != commands:
                _read(switch, by_device[ready], ready, by_address)
                continue
            more = os.read(commands, 1 << 16)
            if not more:
                return
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                change(links, json.loads(line))
                sys.stdout.write(json.dumps(asdict(switch.counts)) + "\n")
                sys.stdout.flush()
        for receiver, packet in switch.due(time.monotonic()):
            try:
                os.write(devices[receiver], packet)
            except BlockingIOError:
                switch.counts.overflowed += 1


def _read(switch: Switch, host: str, device: int, by_address: dict[bytes, str]) -> None:
    """Take what a device has, some packets at most: others have their turn."""
    for _ in range(_MOST_PACKETS):
        try:
            packet = os.read(device, 1 << 16)
        except BlockingIOError:
            return
        if packet[0] >> 4 == _IPV4:
            receiver = by_address.get(packet[16:20])
            if receiver is not None and receiver != host:
                switch.take(time.monotonic(), host, receiver, packet)


if __name__ == "__main__":
    main()
