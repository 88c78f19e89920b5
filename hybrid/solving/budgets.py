"""Budgets of a whole run, besides those of a question (`Limits`): calls, tokens, seconds and dollars.

When one is spent the questions in flight end unrecorded, no further one is begun, and the same command with a larger
budget goes on from there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from hybrid.config import RunLimits
from hybrid.errors import Outage
from hybrid.timing import CallTime
from hybrid.types import Usage


class RunBudgetSpent(Outage):
    """The run's budget is spent: this question stays open."""


@dataclass
class RunMeter:
    """The spending of this command so far, over all questions and solvers."""

    limits: RunLimits = field(default_factory=RunLimits)
    used: Usage = field(default_factory=Usage)
    # Model calls that are under way: they count as made, so that concurrency cannot exceed the limit.
    pending: int = 0
    started: float = field(default_factory=time.monotonic)
    # Of a call, where those under way cannot be taken back, as in a batch: each counts when it is sent.
    expected_usd: float | None = None

    def spent(self) -> str | None:
        """The name of the first budget that allows no further call, or None."""
        limits, used = self.limits, self.used
        if limits.model_calls is not None and used.model_calls + self.pending >= limits.model_calls:
            return f"{limits.model_calls} model calls"
        if limits.tokens is not None and used.input_tokens + used.output_tokens >= limits.tokens:
            return f"{limits.tokens} tokens"
        if limits.seconds is not None and time.monotonic() - self.started >= limits.seconds:
            return f"{limits.seconds:g} seconds"
        if limits.cost_usd is not None and (used.cost_usd or 0.0) + self._under_way_usd >= limits.cost_usd:
            return f"{limits.cost_usd:g} USD"
        return None

    @property
    def _under_way_usd(self) -> float:
        if self.expected_usd is None:
            return 0.0
        # As soon as some have ended, these tell better what one costs.
        ended = self.used.model_calls
        return self.pending * ((self.used.cost_usd or 0.0) / ended if ended else self.expected_usd)

    async def begin(self) -> None:
        """Count a call that starts. Raises `RunBudgetSpent` when none is allowed."""
        if name := self.spent():
            raise RunBudgetSpent(f"the run's budget of {name} is spent")
        self.pending += 1

    def end(self, used: Usage) -> None:
        """Count what a call that started has used; nothing for one that failed."""
        self.pending -= 1
        self.used = self.used + used


def timed(used: Usage, spent: CallTime, wall_s: float, at_least_s: float = 0.0) -> Usage:
    """Usage with the time of a call that took `wall_s` seconds from outside; what did not run was waiting.

    At least `at_least_s` seconds are charged as running time.
    """
    return replace(used, seconds=max(spent.busy, at_least_s), queued_seconds=max(0.0, wall_s - spent.busy))
