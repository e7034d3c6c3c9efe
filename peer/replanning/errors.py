"""Why there is no new plan."""

from __future__ import annotations

from peer.errors import CommandError


class PlanFailed(CommandError):
    """A plan could not be made; nothing has changed."""


class NothingToPlan(CommandError):
    """There is nobody to plan for, or nothing to plan with."""
