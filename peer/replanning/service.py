"""The planner service: plans when asked, on a schedule, and when the network has drifted from its last plan.

It talks to the source through the daemon of its home, by the control socket: the source itself, or a peer whose
certificate has the planner role, which asks over its link. Where a member's home has no daemon running, it runs
one. One plan at a time; what fails is logged and tried again later and later, and the service goes on.
"""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import trio

from overlay.identity import Credential, Role
from peer.client import Client
from peer.daemon.control import SOCKET, serve_control
from peer.daemon.controls import peer_controls
from peer.daemon.one_daemon import only_one
from peer.daemon.peer_daemon import PeerDaemon, PeerSettings
from peer.daemon.questions import NoAnswer
from peer.errors import CommandError
from peer.home import answers
from peer.replanning.due import back_off_s, due
from peer.replanning.errors import NothingToPlan
from peer.replanning.planning import PlanOptions, plan_once

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path

_LOG: Final = logging.getLogger("distributary.planner")
_MOST_WAITING: Final = 16
_MOST_EVENTS: Final = 1_000
_LONGEST_S: Final = 3600.0
PLANNER_SOCKET: Final = "planner.sock"


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """When to plan, how often to look (``look_s``; also the least time after a failure), and how."""

    every_s: float | None = None
    drift: float | None = 0.2
    look_s: float = 30.0
    options: PlanOptions = field(default_factory=PlanOptions)


class PlannerService:
    """See the module's text; ``opened`` runs it."""

    http_port = 0

    def __init__(self, home: Path, settings: PlannerSettings) -> None:
        self.home, self.settings = home, settings
        self.site = Credential.load(home / "identity").member.site
        self._client = Client(home)
        self._demands, self._waiting = trio.open_memory_channel[trio.MemorySendChannel[dict[str, Any]]](
            _MOST_WAITING
        )
        self._failures, self._not_before, self._said = 0, 0.0, ""
        self.finished = trio.Event()
        self.is_planning = False
        self.last: dict[str, Any] | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[PlannerService]:
        """Run the service while the block runs."""
        async with trio.open_nursery() as nursery:
            if await self._needs_daemon():
                await nursery.start(self._run_daemon)
            nursery.start_soon(self._run)
            yield self
            nursery.cancel_scope.cancel()

    async def leave(self) -> None:
        """Nothing is to be said to anybody: a batch under way is ended, and what it would have proposed is not."""

    async def replan(self, _: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Plan now, or when the plan under way is done; yield the stages, and what came of it."""
        send, receive = trio.open_memory_channel[dict[str, Any]](_MOST_EVENTS)
        try:
            self._demands.send_nowait(send)
        except trio.WouldBlock:
            raise NoAnswer(f"{_MOST_WAITING} others wait for a plan already") from None
        if self.is_planning:
            yield {"stage": "waiting", "what": "another plan is under way"}
        async with receive:
            async for event in receive:
                if "failed" in event:
                    raise NoAnswer(event["failed"])
                yield event

    async def status(self, _: dict[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
        """Say how the service stands."""
        yield {
            "site": self.site, "role": "planner", "is_planning": self.is_planning, "last": self.last,
            "failures": self._failures,
        }  # fmt: skip

    async def _needs_daemon(self) -> bool:
        """Say whether a daemon must be run here; ``CommandError`` if this machine may not plan."""
        member = Credential.load(self.home / "identity").member
        if await trio.to_thread.run_sync(answers, self.home, PLANNER_SOCKET):
            raise CommandError(f"a planner runs in {self.home} already")
        if Role.SOURCE in member.roles:
            return False
        if Role.PLANNER not in member.roles:
            raise CommandError(f"{member.site} may not plan: invite it with --role planner, or plan at the source")
        return not await trio.to_thread.run_sync(answers, self.home)

    async def _run_daemon(self, *, task_status: trio.TaskStatus[None]) -> None:
        with only_one(self.home, SOCKET):
            await self._daemon(task_status)

    async def _daemon(self, task_status: trio.TaskStatus[None]) -> None:
        async with (
            PeerDaemon(self.home, PeerSettings(capacity=0)).opened() as daemon,
            trio.open_nursery() as nursery,
        ):
            await nursery.start(serve_control, self.home, peer_controls(daemon))
            self.finished = daemon.finished  # it may leave the network
            task_status.started()

    async def _run(self) -> None:
        while True:
            demand = None
            with trio.move_on_after(self.settings.look_s):
                demand = await self._waiting.receive()
            reason = await self._due() if demand is None else "it was asked for"
            if reason:
                await self._plan(reason, demand)

    async def _due(self) -> str:
        if trio.current_time() < self._not_before:
            return ""
        try:
            state = await self._client.ask("plan_state")
        except CommandError as exc:
            if str(exc) != self._said:  # once, not every time
                _LOG.warning("no source", extra={"reason": str(exc)})
            self._said = str(exc)
            return ""
        self._said = ""
        return due(state, self.settings.every_s, self.settings.drift)

    async def _plan(self, reason: str, demand: trio.MemorySendChannel[dict[str, Any]] | None) -> None:
        def told(stage: str, what: str) -> None:
            _LOG.info("stage", extra={"stage": stage, "what": what})
            _say(demand, {"stage": stage, "what": what})

        _LOG.info("planning", extra={"reason": reason})
        self.is_planning = True
        try:
            self.last = await plan_once(self._client.ask, self.settings.options, told)
        except (CommandError, OSError) as exc:
            self._failed(exc)
            _say(demand, {"failed": str(exc)})
        else:
            self._failures, self._not_before = 0, 0.0
            _LOG.info("planned", extra={name: self.last[name] for name in ("epoch", "changed", "seconds")})
            _say(demand, self.last)
        finally:
            self.is_planning = False
            if demand is not None:
                demand.close()

    def _failed(self, exc: Exception) -> None:
        self._failures += 1
        pause_s = back_off_s(self._failures, self.settings.look_s, _LONGEST_S)
        self._not_before = trio.current_time() + pause_s
        level = logging.INFO if isinstance(exc, NothingToPlan) else logging.WARNING
        _LOG.log(level, "not planned", extra={"reason": str(exc), "again_in_s": pause_s})


def _say(demand: trio.MemorySendChannel[dict[str, Any]] | None, event: dict[str, Any]) -> None:
    """Tell who asked, if anybody did and is still there; the log has it in any case."""
    if demand is not None:
        try:
            demand.send_nowait(event)
        except (trio.BrokenResourceError, trio.WouldBlock):
            _LOG.debug("nobody listens")
