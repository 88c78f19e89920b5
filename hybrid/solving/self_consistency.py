"""Self-consistency: an MLLM is asked several times, and its most frequent answer is the reply.

    vote = await voted(prompt, samples, once, log)      # `once()` asks again from the beginning
    vote.reply, vote.confidence

Wang et al., ICLR 2023 (arXiv:2203.11171), section 2: independent samples, final answers read by the same parser as
other replies, and an unweighted vote over those that can be parsed. Ties go to the answer that came first. The reply is
the first sample with the winning answer, verbatim. Samples are drawn sequentially, so that no more calls are in flight
than the run allows, budgets apply to all samples together, and the calls for a prompt are numbered in one order.

Scanpaths hardly ever agree exactly. The reply is then the medoid: the path with the smallest mean distance to the other
paths (`hybrid.answers.comparing.path_distance`). Such a vote has no confidence. A free text is requested only once.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from hybrid.answers import Answer, parse
from hybrid.answers.comparing import as_json, path_distance
from hybrid.answers.prior_accuracy import chance
from hybrid.core.errors import BudgetSpent
from hybrid.core.off_loop import work_on_text
from hybrid.core.types import Fault, Json, Kind, Prompt, Reply, Scanpath, Step
from hybrid.solving.solver import Log

# Name of the step that holds one sample, verbatim.
SAMPLE = "sample"
# Name of the step with the result of a vote.
VOTE = "vote"
# Key of the winner's confidence in the data of the step `VOTE`.
CONFIDENCE = "confidence"

# Asks the model again from the beginning.
Once = Callable[[], Awaitable[Reply]]


@dataclass(frozen=True)
class Vote:
    """The elected reply."""

    reply: Reply
    # Probability, 0..1, of the reply being right according to the samples; None without a vote.
    confidence: float | None = None


@dataclass(frozen=True)
class Sample:
    """One reply and its parsed answer."""

    reply: Reply
    answer: Answer

    @property
    def ballot(self) -> str | None:
        """The answer as a key, equal for equal answers; None if it cannot be parsed."""
        value = self.answer.value
        return None if value is None else json.dumps(as_json(value), sort_keys=True)


async def voted(prompt: Prompt, samples: int, once: Once, log: Log) -> Vote:
    """Ask `samples` times and elect one reply; log every sample and the vote.

    If a budget ends after the first sample, the samples so far vote. Raises the exceptions of `once`, but
    `BudgetSpent` only for the first sample.
    """
    if samples == 1 or prompt.kind is Kind.FREE:
        return Vote(await once())
    step_count = len(log.steps)
    replies_drawn: list[Sample] = []
    for number in range(samples):
        try:
            reply = await once()
        except BudgetSpent as error:
            if not replies_drawn:
                raise
            log.note(Step("rule", "budget", f"{error}: {number} of {samples} samples", fault=Fault.BUDGET))
            break
        sample = Sample(reply, await work_on_text(reply.text, parse, reply.text, prompt.kind, prompt.choices))
        replies_drawn.append(sample)
        read: dict[str, Json] = {"answer": as_json(sample.answer.value), "rule": sample.answer.rule}
        facts = {"sample": number, **read, "outcome": reply.outcome.value}
        log.note(Step("rule", SAMPLE, reply.text, data=facts))
    refused = sum(step.fault is Fault.REFUSAL for step in log.steps[step_count:])
    counts: dict[str, Json] = {"asked": samples, "samples": len(replies_drawn), "refused": refused}
    vote, data = _medoid(replies_drawn) if prompt.kind is Kind.SCANPATH else _majority(replies_drawn, chance(prompt))
    log.note(Step("rule", VOTE, str(data.pop("text")), data={**counts, **data, CONFIDENCE: vote.confidence}))
    return vote


def _majority(samples: Sequence[Sample], guess: float) -> tuple[Vote, dict[str, Json]]:
    """Elect the answer with the most votes, the first among equals; if no answer is readable, elect the first reply."""
    # The confidence is the winner's share of all samples and one extra sample. The extra sample and every unreadable
    # sample count as a guess, which is right with probability `guess`, so unreadable samples never increase the
    # confidence. A counter keeps the order of its keys, and `max` takes the first of equals.
    votes = Counter(sample.ballot for sample in samples if sample.ballot is not None)
    data: dict[str, Json] = {"readable": votes.total(), "votes": dict(votes), "entropy_bits": entropy_bits(votes)}
    if not votes:
        return Vote(samples[0].reply), {**data, "text": "no sample can be read"}
    winner = max(votes, key=lambda ballot: votes[ballot])
    elected = next(sample for sample in samples if sample.ballot == winner)
    share = (votes[winner] + guess * (len(samples) + 1 - votes.total())) / (len(samples) + 1)
    text = f"{votes[winner]} of {votes.total()} readable samples say {winner}"
    return Vote(elected.reply, share), {**data, "text": text}


def _medoid(samples: Sequence[Sample]) -> tuple[Vote, dict[str, Json]]:
    """Elect the scanpath with the smallest mean distance to the other scanpaths, the first among equals."""
    paths = [(sample, value) for sample in samples if isinstance(value := sample.answer.value, Scanpath)]
    data: dict[str, Json] = {"readable": len(paths)}
    if not paths:
        return Vote(samples[0].reply), {**data, "text": "no sample can be read"}
    means = [sum(path_distance(path, other) for _, other in paths) / max(1, len(paths) - 1) for _, path in paths]
    place = means.index(min(means))
    text = f"the scanpath nearest to the others of {len(paths)}, at a mean distance of {means[place]:.3f}"
    return Vote(paths[place][0].reply), {**data, "mean_distance_0_1": means[place], "text": text}


def entropy_bits(votes: Mapping[str, int]) -> float:
    """Return the Shannon entropy of the votes in bits: 0 if all agree or there is no vote."""
    total = sum(votes.values())
    return -sum(n / total * math.log2(n / total) for n in votes.values() if n) + 0.0


def confidence_in(steps: Sequence[Step]) -> float | None:
    """Return the confidence of the last vote among the steps for a prompt; None without a vote."""
    for step in reversed(steps):
        if step.kind == "rule" and step.name == VOTE:
            confidence = step.data.get(CONFIDENCE)
            return float(confidence) if isinstance(confidence, int | float) else None
    return None
