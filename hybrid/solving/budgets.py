"""The cost of a call, and budgets of a full run in addition to those of a question (`Limits`).

When a budget is spent, the questions in flight end unrecorded and no further question starts; the same command with a
larger budget continues the run.

A cost comes only from `--model-arg price=IN/OUT[/CACHED[/WRITTEN]]`, in US dollars per million tokens. No table of
prices is included, because a price that was not checked on the day of the run is worse than none: without the option
the cost is unknown (None), never 0.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace

from hybrid.config import Limits, Price, RunLimits
from hybrid.core.errors import Outage
from hybrid.core.messages import TokenUsage
from hybrid.core.timing import CallTime
from hybrid.core.types import Usage
from hybrid.display.notes import tell
from hybrid.models.base import ModelRefused

# Price of a request in a batch relative to the ordinary price, at OpenAI, Anthropic and Google alike (2026).
BATCH_SHARE = 0.5


def cost_usd(usage: TokenUsage | None, price: Price | None, *, batched: bool = False) -> float | None:
    """Return the cost of a message's tokens in dollars; None if the price or the token counts are unknown."""
    if usage is None or price is None:
        return None
    cost = price.of(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0, usage.cache_write_tokens)
    return cost * BATCH_SHARE if batched else cost


class RunBudgetSpent(Outage):
    """The run's budget is spent; this question stays open."""


@dataclass
class RunMeter:
    """The usage of this command so far, over all questions and solvers."""

    limits: RunLimits = field(default_factory=RunLimits)
    used: Usage = field(default_factory=Usage)
    # Model calls in progress; they count as made, so that concurrent calls cannot exceed the limit.
    pending: int = 0
    started: float = field(default_factory=time.monotonic)
    # Expected cost of a call that cannot be withdrawn once it is pending, such as a call in a batch. The cost counts
    # from the moment when the call is sent.
    expected_usd: float | None = None
    # Warnings already printed, because each is printed once per run.
    warned: set[str] = field(default_factory=set)

    def warn_once(self, line: str) -> None:
        """Print a warning on stderr, unless this run already printed it."""
        if line not in self.warned:
            self.warned.add(line)
            tell(line)

    def spent(self) -> str | None:
        """Return the name of the first budget that allows no further call, or None."""
        limits, used = self.limits, self.used
        usd = used.cost_usd or 0.0
        if self.expected_usd is not None:
            # Once some calls have ended, their mean is a better estimate of the cost of a call.
            usd += self.pending * (usd / used.model_calls if used.model_calls else self.expected_usd)
        budgets = (
            (limits.model_calls, used.model_calls + self.pending, "{} model calls"),
            (limits.tokens, used.input_tokens + used.output_tokens, "{} tokens"),
            (limits.seconds, time.monotonic() - self.started, "{:g} seconds"),
            (limits.cost_usd, usd, "{:g} USD"),
        )
        return next((name.format(most) for most, spent, name in budgets if most is not None and spent >= most), None)

    async def begin(self) -> None:
        """Count a call when it starts. Raises `RunBudgetSpent` if none is allowed."""
        if name := self.spent():
            raise RunBudgetSpent(f"the run's budget of {name} is spent")
        self.pending += 1

    def refuse_uncounted(self, model: str, question: Limits) -> None:
        """Raise `ModelRefused` for a reply without token counts if a budget of the run or of a question needs them.

        Otherwise that budget would never be spent, however much the run costs.
        """
        budgets = {
            "--run-max-tokens": self.limits.tokens,
            "--run-max-cost": self.limits.cost_usd,
            "--max-total-tokens": question.tokens,
            "--max-cost": question.cost_usd,
        }
        limits = [f"{option} {most:g}" for option, most in budgets.items() if most is not None]
        if limits:
            raise ModelRefused(
                f"--model {model}: its replies come without token counts, so {' and '.join(limits)} cannot be enforced"
                "; leave it out, or limit the run by --run-max-calls or --limit"
            )

    def count_lost(self, requests: int) -> bool:
        """Count requests with lost replies as paid requests; return whether the budget allows sending them again."""
        used = self.used
        cost_per_call = used.cost_usd / used.model_calls if used.cost_usd and used.model_calls else self.expected_usd
        estimate = Usage(model_calls=requests, cost_usd=None if cost_per_call is None else cost_per_call * requests)
        self.used = used + estimate
        # The requests to repeat are still pending. `spent` asks for room for one more call, so leave out one of them.
        self.pending -= 1
        try:
            return self.spent() is None
        finally:
            self.pending += 1

    def end(self, used: Usage) -> None:
        """Count the usage of a call that started; nothing for one that failed."""
        self.pending -= 1
        self.used = self.used + used


def timed(used: Usage, spent: CallTime, wall_s: float, at_least_s: float = 0.0) -> Usage:
    """Return a call's usage with its running and waiting time; the call took `wall_s` seconds in total.

    At least `at_least_s` seconds count as running time.
    """
    return replace(used, seconds=max(spent.busy, at_least_s), queued_seconds=max(0.0, wall_s - spent.busy))
