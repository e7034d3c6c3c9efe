"""The webhooks of a peer: each has a task of its own, so one whose receiver is dead holds up nobody.

    reading --batch is full, or all there is was read--> posting --2xx--> cursor moved --> reading
    posting --anything else--> waiting, longer each time --> posting the same batch again

A batch is tried until it is taken; meanwhile nothing more is read, so memory holds one batch per webhook. After a
restart reading goes on behind the cursor: what was taken last may come again, in a batch that is cut otherwise.
"""

from __future__ import annotations

import logging
import random
import secrets
import time
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

from peer.daemon.cursors import RESERVED
from peer.daemon.questions import NoAnswer, Unreachable
from peer.webhooks.batching import Batch, headers_of
from peer.webhooks.hooks import FILE, MOST_HOOKS, SHORTEST_SECRET, Hook, read_hooks, target_of, write_hooks
from peer.webhooks.posting import NotDelivered, post
from peer.webhooks.signing import HEADER, signature
from peer.webhooks.waiting import HookTimes, Waiting

if TYPE_CHECKING:
    from pathlib import Path

    from peer.daemon.cursors import Cursors
    from peer.daemon.reading import Reading

_LOG: Final = logging.getLogger("distributary.webhooks")


@dataclass(eq=False)
class _Running:
    """A webhook, and how it stands."""

    hook: Hook
    waiting: Waiting
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    state: str = "idle"
    problem: str = ""
    posts: int = 0
    upto: int | None = None


class Webhooks:
    """All webhooks of a peer; ``run`` delivers."""

    def __init__(self, home: Path, reading: Reading, cursors: Cursors, times: HookTimes | None = None) -> None:
        self._path, self._reading, self._cursors = home / FILE, reading, cursors
        self._times = times or HookTimes()
        self._rng = random.Random(secrets.randbits(64))
        self._running = {hook.id: self._standing(hook) for hook in read_hooks(self._path)}
        self._nursery: trio.Nursery | None = None
        self._changing = trio.Lock()
        self.failures = 0

    async def run(self) -> None:
        """Deliver until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for one in list(self._running.values()):
                nursery.start_soon(self._keep_delivering, one)
            await trio.sleep_forever()

    async def add(
        self, subscription: str, url: str, *, since: int = 0, secret: str | None = None
    ) -> dict[str, Any]:
        """Begin to deliver a subscription to a URL; the answer tells the secret, this once."""
        target_of(url)
        if secret is not None and len(secret) < SHORTEST_SECRET:
            raise NoAnswer(f"the secret must have {SHORTEST_SECRET} characters or more")
        async with self._changing:
            if any((one.hook.subscription, one.hook.url) == (subscription, url) for one in self._running.values()):
                raise NoAnswer(f"{subscription} is posted to {url} already")
            if len(self._running) >= MOST_HOOKS:
                raise NoAnswer(f"there are {MOST_HOOKS} webhooks here, the most; remove one first")
            hook = Hook(f"w-{secrets.token_hex(4)}", subscription, url, secret or secrets.token_hex(32))
            at = await self._cursors.begin(subscription, RESERVED + hook.id, since)
            one = self._running[hook.id] = self._standing(hook)
            await self._keep()
        if self._nursery is not None:
            self._nursery.start_soon(self._keep_delivering, one)
        return {"webhook": hook.id, "subscription": subscription, "url": url, "since": at, "secret": hook.secret}

    async def remove(self, name: str) -> dict[str, Any]:
        """End a webhook; what is being posted may still arrive."""
        async with self._changing:
            one = self._running.pop(name, None)
            if one is None:
                raise NoAnswer(f"there is no webhook {name[:100]} here; 'distributary webhook list' lists them")
            await self._keep()
            one.scope.cancel()
            try:
                await self._cursors.remove(one.hook.subscription, RESERVED + name)
            except NoAnswer as exc:
                _LOG.info("no cursor", extra={"webhook": name, "reason": str(exc)})
        return {"webhook": name}

    def standing(self) -> list[dict[str, Any]]:
        """Say how the webhooks stand."""
        return [
            {
                "webhook": one.hook.id, "subscription": one.hook.subscription, "url": one.hook.url,
                "state": one.state, "problem": one.problem, "failures": one.waiting.failures, "posts": one.posts,
                "upto": one.upto,
            }
            for one in self._running.values()
        ]  # fmt: skip

    def _standing(self, hook: Hook) -> _Running:
        return _Running(hook, Waiting(self._times))

    async def _keep(self) -> None:
        hooks = [one.hook for one in self._running.values()]
        await trio.to_thread.run_sync(write_hooks, self._path, hooks)

    async def _keep_delivering(self, one: _Running) -> None:
        with one.scope:
            while True:
                try:
                    await self._deliver(one)
                    one.state = "ended"  # so has its subscription, and all of it is delivered
                    return
                except Unreachable as exc:  # its cursor cannot be moved now
                    await self._wait(one, str(exc))
                except NoAnswer as exc:  # its subscription is forgotten: nothing will ever come
                    one.state, one.problem = "ended", str(exc)
                    return
                except Exception as exc:  # whatever happens to one, the others go on
                    _LOG.exception("webhook", extra={"webhook": one.hook.id})
                    await self._wait(one, f"{type(exc).__name__}: {exc}")

    async def _deliver(self, one: _Running) -> None:
        """Read, post, and move the cursor, until the subscription has ended."""
        name, cursor = one.hook.subscription, RESERVED + one.hook.id
        one.upto = await self._cursors.begin(name, cursor, 0)
        batch, moved_at = Batch(name), trio.current_time()
        async with aclosing(self._reading.entries(name, one.upto, follow=True)) as entries:
            async for told in entries:
                batch.add(told)
                if not batch.is_full and "complete" not in told:
                    continue
                if batch:
                    await self._post(one, batch)
                if batch.upto > one.upto and (batch or trio.current_time() >= moved_at + self._times.idle_s):
                    await self._cursors.move(name, cursor, batch.upto)
                    one.upto, moved_at = batch.upto, trio.current_time()
                batch = Batch(name)

    async def _post(self, one: _Running, batch: Batch) -> None:
        """Post a batch until it is taken."""
        target, body = target_of(one.hook.url), batch.body()
        secret = one.hook.secret.encode()
        while True:
            one.state = "posting"
            signed = (HEADER, signature(secret, body, int(time.time())))
            try:
                await post(target, [*headers_of(batch, body), signed], body, self._times.patience_s)
            except NotDelivered as exc:
                await self._wait(one, str(exc))
                continue
            one.state, one.problem = "idle", ""
            one.posts += 1
            one.waiting.delivered()
            return

    async def _wait(self, one: _Running, problem: str) -> None:
        one.state, one.problem = "waiting", problem
        self.failures += 1
        pause = one.waiting.failed(self._rng)
        failures = one.waiting.failures
        level = logging.WARNING if failures == 1 else logging.DEBUG
        _LOG.log(level, "not delivered", extra={"webhook": one.hook.id, "reason": problem, "pause_s": pause})
        await trio.sleep(pause)
