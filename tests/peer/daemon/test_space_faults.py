"""The content-driven network over real sockets while links are cut, zones are split and owners change: every
subscription gets what brute force gives it, once, in the order of numbers."""

import random

import trio

from overlay.content import frames
from overlay.wire.frames import Content
from rewriting.filters import Disjunction
from tests.peer.daemon.network import live_network
from tests.peer.daemon.test_spaces import a_message, publish, read, started, until

TEXTS = [
    "price < 50", "topic = 'sport'", "topic = 'art' and price >= 30", "price > 20 and stock >= 2",
    "price < 10 or topic prefix 'ar'", "stock in (1, 3)",
]  # fmt: skip


class Cuts:
    """Pairs of machines that cannot reach each other: their connection ends, and neither can dial the other."""

    def __init__(self, network):
        self._network, self._pairs = network, set()

    def watch(self, daemon):
        """Let a daemon's dialling obey."""
        find = daemon.links._find

        async def find_unless_cut(site):
            return () if frozenset((daemon.site, site)) in self._pairs else await find(site)

        daemon.links._find = find_unless_cut
        return daemon

    def cut(self, one, *others):
        for other in others:
            self._pairs.add(frozenset((one, other)))
            for here, there in ((one, other), (other, one)):
                daemon = self._network.source if here == "source" else self._network.peers[here]
                if (wire := daemon.links._wires.get(there)) is not None:
                    wire.scope.cancel()

    def heal(self, one, *others):
        self._pairs -= {frozenset((one, other)) for other in others}


class Story:
    """Messages that flow all the time, subscriptions, and a reader of each that goes on from where all is here."""

    def __init__(self, network):
        self.network, self.rng = network, random.Random(6)
        self.sent, self.wanted, self.read, self.complete = {}, {}, {}, {}
        self.flows = True

    async def subscribe(self, site, text):
        told = await self.network.peers[site].spaces.subscribe("market", text)
        name = told["subscription"]
        self.wanted[name] = site, Disjunction.parse(text), told["start"]
        self.read[name], self.complete[name] = [], 0

    async def flow(self):
        while self.flows:
            message = a_message(self.rng)
            self.sent[await publish(self.network, message, f"k{len(self.sent)}")] = message
            await trio.sleep(0.04)

    async def read_on(self):
        """Read what is new for everybody, as far as it is complete."""
        for name, (site, _, _) in list(self.wanted.items()):
            for one in await read(self.network.peers[site], name, self.complete[name]):
                assert "gap" not in one, (name, one)
                if "message" in one:
                    self.read[name].append((one["message"], one["attributes"]))
                else:
                    self.complete[name] = max(self.complete[name], one["complete"])

    def truth(self, name):
        _, wanted, start = self.wanted[name]
        return [(n, one) for n, one in sorted(self.sent.items()) if n > start and wanted.matches(one)]


async def refused_by(network, sender, site, message):
    """Let one machine ask another to bring a message to everybody, over their link; return what it answers."""
    answers = []
    spaces = network.peers[sender].spaces
    (key,) = spaces.nodes
    heard = spaces.heard

    def listen(member, frame):
        said = frames.decode_untrusted(frame.body)
        if member.site == site and getattr(said, "number", None) == message.number:
            answers.append(said)
        heard(member, frame)

    spaces.heard = listen
    spread = Content(key, frames.encode(frames.Spread("", False, message)))
    with trio.fail_after(20):
        while not answers:
            network.peers[sender].links.send(site, spread)
            await trio.sleep(0.1)
    spaces.heard = heard
    return answers[0]


async def test_deliveries_stay_exact_while_links_zones_and_owners_change(tmp_path):
    async with live_network(tmp_path) as network, trio.open_nursery() as nursery:
        peers, cuts, story = await started(network, 3), Cuts(network), Story(network)
        for peer in peers:
            cuts.watch(peer)
        for i, text in enumerate(TEXTS * 2):
            await story.subscribe(f"p{i % 3}", text)
        origin = network.source.spaces.origins["market"]
        known = origin.catalog.history.now
        await until(lambda: network.source.spaces.rebalance() or len(known.owners()) > 1)
        nursery.start_soon(story.flow)

        # The link between two owners is cut, and healed.
        await until(lambda: len(story.sent) > 10)
        one, two = sorted(known.owners())[:2]
        cuts.cut(one, two)
        await trio.sleep(3)
        cuts.heal(one, two)
        await story.read_on()

        # A newcomer takes a part of the space, and subscribes.
        zones = len(known.grants)
        cuts.watch(await network.start_peer("p3"))
        await until(lambda: known.owned_by("p3"))
        assert len(known.grants) >= zones
        await network.peers["p3"].connected.wait()
        for text in TEXTS[:2]:
            await story.subscribe("p3", text)
        await story.read_on()

        # An owner is cut off; others take its zones over. When it is back it does not act on what it had.
        lonely = next(site for site in sorted(known.owners()) if site != "p3")
        others = [site for site in ("source", "p0", "p1", "p2", "p3") if site != lonely]
        node = next(iter(network.peers[lonely].spaces.nodes.values()))
        fences = {zone: known.grants[zone].fence for zone in known.owned_by(lonely)}
        cuts.cut(lonely, *others)
        await until(lambda: not known.owned_by(lonely))
        assert node.known.owned_by(lonely), "it still believes that it owns them"
        cuts.heal(lonely, "p3")
        probe = frames.Message(max(story.sent) + 10_000_000, known.version, 0, {"price": "1", "topic": "art"})
        answer = await refused_by(network, "p3", lonely, probe)
        assert isinstance(answer, frames.Refused)
        assert answer.version < known.version
        cuts.heal(lonely, *others)
        await until(lambda: known.owned_by(lonely))
        assert all(known.grants[zone].fence > max(fences.values()) for zone in known.owned_by(lonely))
        await story.read_on()

        # An owner is stopped, and another takes over.
        stopped = next(site for site in sorted(known.owners()) if site != lonely)
        await network.stop(stopped)
        await until(lambda: not known.owned_by(stopped))
        before = len(story.sent)
        await until(lambda: len(story.sent) > before + 10)
        cuts.watch(await network.start_peer(stopped))
        story.flows = False
        await trio.sleep(0.2)

        last = max(story.sent)
        with trio.fail_after(60):
            while min(story.complete.values()) < last:
                await trio.sleep(0.1)
                await story.read_on()
        for name in story.wanted:
            assert story.read[name] == story.truth(name)
        assert len(story.sent) > 100
        assert sum(map(len, story.read.values())) > 500
