"""A host that ends the run when it does what none may, whoever would have stopped the consequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from overlay.wire.frames import Opened
from peer.hosting.host import Host
from scenarios.simulation.verdicts import Check, WentWrong

if TYPE_CHECKING:
    from overlay.wire.frames import FromReceiver, FromSender
    from peer.hosting.attempt import Attempt
    from peer.hosting.configuration import Configuration
    from peer.hosting.feeding import Feeding
    from peer.storage.result_store import ResultStore


class WatchedHost(Host):
    """As ``Host``; ``results``: the store that it must agree with."""

    results: ResultStore

    def install(self, configuration: Configuration, permit: bytes, now: float, **known: Any) -> bool:
        """Take a configuration in: only one that is newer."""
        here = self.subscriptions.get(configuration.subscription)
        before = None if here is None else here.configuration.version
        is_new = super().install(configuration, permit, now, **known)
        if is_new and before is not None and configuration.version <= before:
            what = f"{configuration.subscription} took {configuration.version} after {before}"
            raise WentWrong(Check.VERSION, what)
        return is_new

    def registered(self, feed: int, owner: Feeding, attempt: Attempt, place: int) -> None:
        """Let a feed be opened: not for what is stored already."""
        name, after = owner.configuration.subscription, attempt.feeds[place].covered
        stored = self.results.frontier(name)
        if stored is not None and after < stored.upto:
            what = f"{name} asks for what comes after {after}, and has {stored.upto} on disk"
            raise WentWrong(Check.FRONTIER, what)
        super().registered(feed, owner, attempt, place)

    def send(self, site: str, frame: FromReceiver | FromSender) -> bool:
        """Send to a machine, this one included; a feed is opened where this one still has everything."""
        if isinstance(frame, Opened):
            hosted = next(one for one in self.subscriptions.values() if (site, frame.feed) in one.outlet.feeds)
            lowest = max(hosted.configuration.start, self.results.lowest(hosted.name) or 0)
            if frame.after < lowest:
                what = f"{hosted.name} feeds {site} from {frame.after} on, and has nothing up to {lowest}"
                raise WentWrong(Check.SERVED, what)
        return super().send(site, frame)
