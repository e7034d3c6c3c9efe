"""The machines of the simulator on real sockets: TLS links through proxies that delay, and that cut connections.

Over TCP a frame that is lost, repeated or overtaken is a broken connection; that is what the proxies make of it.
Time is real, and so are the connections; the machines are the simulator's, with their stores.
"""

import random
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import trio

from overlay.identity import Address, Role
from overlay.wire.connection import Patience
from peer.daemon.links import Links
from scenarios.simulation.peers import SOURCE
from scenarios.simulation.verdicts import Check, Violation
from scenarios.simulation.wires import Chaos
from scenarios.simulation.world import World
from tests.overlay.identity.networks import Net

DELAY_S = 0.002


class Clock:
    """An agenda that goes by trio's clock."""

    is_detailed = False

    def __init__(self, seed, nursery):
        self.rng, self._nursery, self._begun = random.Random(seed), nursery, trio.current_time()
        self.lines = []

    @property
    def now(self):
        return trio.current_time() - self._begun

    def after(self, delay, action, *arguments):
        self._nursery.start_soon(self._later, delay, action, arguments)

    async def _later(self, delay, action, arguments):
        await trio.sleep(delay)
        action(*arguments)

    def note(self, what):
        self.lines.append(f"{self.now:10.3f}  {what}")


class Ear:
    """What a machine hears of its links in one life."""

    def __init__(self, wires, machine):
        self._wires, self._machine, self._life = wires, machine, machine.life

    def up(self, member):
        self._hear(lambda: self._machine.connected(member.site))

    def lost(self, site):
        self._hear(lambda: self._machine.lost(site))

    def told(self):
        """Nothing waits for this."""

    def heard(self, member, frames):
        for frame in frames:
            self._hear(lambda frame=frame: self._machine.heard(member.site, frame))

    def _hear(self, told):
        if self._machine.is_up and self._machine.life == self._life:
            try:
                told()
            except Exception as exc:  # links drop who says what cannot be; here it is a defect
                self._wires.wrong.append(Violation(Check.ERROR, f"{type(exc).__name__}: {exc}"))


class TcpWires:
    """As ``Wires``; see the module's text."""

    def __init__(self, nursery, credentials):
        self.chaos, self.sent_bytes, self.wrong = Chaos(), {}, []
        self._nursery, self._credentials = nursery, credentials
        self._links, self._scopes, self._ports, self._proxies = {}, {}, {}, {}

    def add(self, machine):
        self._nursery.start_soon(self._keep, machine)

    def send(self, sender, receiver, frame):
        return sender in self._links and self._links[sender].send(receiver, frame)

    def is_connected(self, one, other):
        return one in self._links and other in self._links[one].sites

    def waiting(self, name):
        return self._links[name].frames_waiting if name in self._links else 0

    def crash(self, name, *, is_noticed):
        if name in self._links:
            del self._links[name]
            self._scopes.pop(name).cancel()

    async def _keep(self, machine):
        """Let a machine have links whenever it is up, always behind the same proxy."""
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self._proxies[machine.name] = listeners[0].socket.getsockname()[1]
        self._nursery.start_soon(trio.serve_listeners, self._proxy(machine.name), listeners)
        while True:
            if machine.is_up:
                links = Links(self._credentials[machine.name], Ear(self, machine), self._find, patience=Patience())
                with trio.CancelScope() as scope:
                    self._links[machine.name], self._scopes[machine.name] = links, scope
                    await self._serve(machine.name, links)
            await trio.sleep(0.01)

    async def _serve(self, name, links):
        async with trio.open_nursery() as nursery:
            self._ports[name] = await nursery.start(links.serve, "127.0.0.1", 0)

    async def _find(self, site):
        return (Address("127.0.0.1", self._proxies[site]),) if site in self._proxies else ()

    def _proxy(self, name):
        async def forward(near):
            try:
                far = await trio.open_tcp_stream("127.0.0.1", self._ports[name])
            except (OSError, KeyError):
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
                if random.random() < self.chaos.lose:
                    break
                await trio.sleep(random.random() * DELAY_S)
                await target.send_all(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        nursery.cancel_scope.cancel()


class TcpWorld(World):
    """A world on real links."""

    def __init__(self, nursery, credentials, seed, names, folder):
        self._nursery, self._credentials = nursery, credentials
        super().__init__(seed, names, folder)
        self.watcher.wrong = self.wires.wrong

    def _made(self, seed, *, is_detailed):
        return Clock(seed, self._nursery), TcpWires(self._nursery, self._credentials)

    async def finished(self):
        """Bring everything back, wait until everybody has everything, and say what is wrong."""
        self.recover()
        with trio.move_on_after(90):
            while not (self.source.is_up and self.is_done):  # nobody tells when everybody is done
                await trio.sleep(0.1)
        return self.wrong()


@asynccontextmanager
async def tcp_world(folder, seed, names):
    """Run such a world while the block runs."""
    net = Net(folder / "identities", "test", datetime.now(UTC))
    credentials = {name: net.join(name, [Role.SUBSCRIBER]) for name in names} | {SOURCE: net.source}
    (folder / "stores").mkdir()
    async with trio.open_nursery() as nursery:
        world = TcpWorld(nursery, credentials, seed, names, folder / "stores")
        yield world
        nursery.cancel_scope.cancel()
    world.close()
