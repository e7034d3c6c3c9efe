"""The machines of the simulation on real sockets: TLS links through proxies that delay, and that cut connections.

Over TCP a frame that is lost, repeated or overtaken is a broken connection; that is what the proxies make of it.
Everything runs in a trio thread of its own, so that the same tests drive it as drive the simulation.
"""

import random
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime

import trio

from overlay.identity import Address, Role
from overlay.wire.connection import Patience
from peer.daemon.links import Links
from tests.overlay.identity.networks import Net
from tests.peer.hosting.simulation import SOURCE, Faults, Machine, Network, Source

FASTER = 10
"""How much less real time passes than a test says: the simulation's seconds are long."""


class Ear:
    """What a machine hears of its links."""

    def __init__(self, machine):
        self.machine = machine

    def up(self, member):
        if self.machine.host is not None:
            self.machine.site_up(member.site)

    def lost(self, site):
        if self.machine.host is not None:
            self.machine.site_lost(site)

    def heard(self, member, frame):
        if self.machine.host is not None and hasattr(frame, "feed"):
            self.machine.handle(member.site, frame)


class Caller:
    """Calls the methods of something in the trio thread."""

    def __init__(self, network, target):
        self._network, self._target = network, target

    def __getattr__(self, name):
        found = getattr(self._target, name)
        return (lambda *arguments: self._network.call(found, *arguments)) if callable(found) else found


class TcpNetwork:
    """As ``Network``; see the module's text."""

    def __init__(self, folder, seed, names, faults=None):
        self.rng, self.faults = random.Random(seed), faults or Faults()
        net = Net(folder, "test", datetime.now(UTC))
        self._credentials = {name: net.join(name, [Role.SUBSCRIBER]) for name in names} | {SOURCE: net.source}
        self._names = names
        self._links, self._scopes, self._ports, self._proxies = {}, {}, {}, {}
        self._ready, self._stop, self.failure = threading.Event(), None, None

    @property
    def now(self):
        return trio.current_time()

    def call(self, function, *arguments):
        return trio.from_thread.run_sync(function, *arguments, trio_token=self._token)

    def run(self, seconds):
        """Let time pass."""
        threading.Event().wait(seconds / FASTER)
        assert self.failure is None, self.failure

    def rest(self, is_done, seconds):
        """Let time pass until something is so, however slow this machine is."""
        end = time.monotonic() + 90
        while not is_done() and time.monotonic() < end:
            self.run(1)

    # What machines ask for.

    def send(self, name, site, frame):
        return self._links[name].send(site, frame)

    def after(self, delay, action, *arguments):
        self._nursery.start_soon(self._later, delay / FASTER, action, arguments)

    async def _later(self, delay, action, arguments):
        await trio.sleep(delay)
        action(*arguments)

    # What happens to them.

    def crash(self, name):
        self.call(self._crash, name)

    def _crash(self, name):
        self._all[name].crash()
        self._scopes.pop(name).cancel()

    def restart(self, name):
        trio.from_thread.run(self._restart, name, trio_token=self._token)

    async def _restart(self, name):
        await self._listen(name)
        self._all[name].start()

    def results(self, name, subscription):
        return self.call(Network.results, self, name, subscription)

    # How it is done.

    async def main(self):
        self._token, self._stop = trio.lowlevel.current_trio_token(), trio.Event()
        try:
            async with trio.open_nursery() as self._nursery:
                self.source = Source(self)
                self._all = {SOURCE: self.source}
                for name in (SOURCE, *self._names):
                    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
                    self._proxies[name] = listeners[0].socket.getsockname()[1]
                    self._nursery.start_soon(trio.serve_listeners, self._proxy(name), listeners)
                    if name != SOURCE:
                        self._all[name] = Machine(self, name)
                    await self._listen(name)
                self.machines = {name: Caller(self, machine) for name, machine in self._all.items()}
                self.source = self.machines[SOURCE]
                self._nursery.start_soon(self._beat)
                self._ready.set()
                await self._stop.wait()
                self._nursery.cancel_scope.cancel()
        except BaseException as exc:
            self.failure = exc
            self._ready.set()
            raise

    async def _listen(self, name):
        self._links[name] = Links(self._credentials[name], Ear(self._all[name]), self._find, patience=Patience())
        self._scopes[name] = trio.CancelScope()
        self._ports[name] = await self._nursery.start(self._serve, name)

    async def _serve(self, name, *, task_status):
        with self._scopes[name]:
            await self._links[name].serve("127.0.0.1", 0, task_status=task_status)

    async def _find(self, site):
        return (Address("127.0.0.1", self._proxies[site]),)

    async def _beat(self):
        while True:
            for machine in self._all.values():
                if machine.host is not None:
                    machine.tick()
            await trio.sleep(0.05)

    def _proxy(self, name):
        async def forward(near):
            try:
                far = await trio.open_tcp_stream("127.0.0.1", self._ports[name])
            except OSError:
                await trio.aclose_forcefully(near)
                return
            async with near, far, trio.open_nursery() as nursery:
                nursery.start_soon(self._pump, near, far, nursery)
                nursery.start_soon(self._pump, far, near, nursery)

        return forward

    async def _pump(self, source, target, nursery):
        """Pass bytes on, late; or cut the connection."""
        try:
            while data := await source.receive_some(1 << 16):
                faults = self.faults
                if self.rng.random() < faults.lose + faults.repeat + faults.overtake:
                    break
                await trio.sleep(self.rng.random() * faults.delay_s / FASTER)
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        nursery.cancel_scope.cancel()


@contextmanager
def tcp_network(folder, seed, names, faults=None):
    """Run such a network while the block runs."""
    network = TcpNetwork(folder, seed, names, faults)
    thread = threading.Thread(target=trio.run, args=(network.main,), daemon=True)
    thread.start()
    assert network._ready.wait(60), "it does not start"
    try:
        yield network
    finally:
        network.call(network._stop.set)
        thread.join(60)
    assert network.failure is None, network.failure
