"""Tokens, cost and failures of one solver since the command started, shown while it runs.

    so_far = Progress()
    so_far = so_far.with_attempt(attempt)     # a question that was finished

Earlier commands are not included; `hybrid score` reads the usage of a full run from its attempts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.core.types import Attempt, Usage


@dataclass(frozen=True)
class Progress:
    """The progress of one solver in one command."""

    # Usage of the finished questions.
    used: Usage = field(default_factory=Usage)
    # Number of questions without an answer, whether or not the next command asks them again.
    failed: int = 0
    # Number of retried model requests of the finished questions.
    retries: int = 0
    # Number of questions with each fault that has a remedy, by text of fault and remedy.
    faults: Mapping[str, int] = field(default_factory=dict)
    # Description of the batches that the solver waits for.
    waits: str = ""

    def with_attempt(self, attempt: Attempt) -> Progress:
        """Return the progress after one more finished question."""
        replies = [exchange.reply for exchange in attempt.exchanges]
        failed = any(reply.outcome.failed for reply in replies)
        steps = [step for reply in replies for step in reply.steps]
        retries = sum(count for step in steps if isinstance(count := step.data.get("retries"), int))
        new = {f"{step.text}; {step.data['remedy']}" for step in steps if "remedy" in step.data}
        faults = Counter(self.faults) + Counter(new) if new else self.faults
        used = sum((reply.usage for reply in replies), self.used)
        return Progress(used, self.failed + failed, self.retries + retries, faults, self.waits)
