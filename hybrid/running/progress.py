"""Tokens, cost and losses of one solver since its command began, shown while it runs.

    so_far = Progress()
    so_far = so_far.with_attempt(attempt)     # a question that was finished

Earlier commands are not in it; what a whole run has used is read from its attempts (`hybrid score`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hybrid.core.types import Attempt, Usage


@dataclass(frozen=True)
class Progress:
    """One solver in one command."""

    # Of the questions that were finished.
    used: Usage = field(default_factory=Usage)
    # Questions without an answer, whether or not the next command asks them again.
    failed: int = 0
    # Requests to the model that were sent once more, of the questions that were finished.
    retries: int = 0
    # Faults with a remedy, by fault and remedy in words: in how many questions each was.
    faults: Mapping[str, int] = field(default_factory=dict)
    # For which batches it waits, in words.
    waits: str = ""

    def with_attempt(self, attempt: Attempt) -> Progress:
        """The progress after one more finished question."""
        replies = [exchange.reply for exchange in attempt.exchanges]
        failed = any(reply.outcome.failed for reply in replies)
        steps = [step for reply in replies for step in reply.steps]
        retries = sum(count for step in steps if isinstance(count := step.data.get("retries"), int))
        new = {f"{step.text}; {step.data['remedy']}" for step in steps if "remedy" in step.data}
        faults = Counter(self.faults) + Counter(new) if new else self.faults
        used = sum((reply.usage for reply in replies), self.used)
        return Progress(used, self.failed + failed, self.retries + retries, faults, self.waits)
