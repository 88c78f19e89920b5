"""The arbiter: the MLLM proposes, the specialist answers, and an explicit rule decides.

    hybrid run blink --solver arbiter --model openai:gpt-4o [--trust trust.json] [--setting samples=5]

A LangGraph graph of three nodes; `propose` and `specialist` run in parallel. The rule (`decide`):

- Without a readable answer of the specialist, the proposal is kept.
- An unreadable proposal never beats a readable answer of the specialist.
- If both agree, the proposal is kept in its own words.
- If they differ and each is less likely to be right than a guess, which only a measurement can show, there is no
  answer.
- If two independent answers, right with probabilities p and m, differ, the first has odds of p (1 - m) : m (1 - p).
  Because p and m are estimates, the specialist replaces the proposal only if its log-odds are higher by more than
  `LIKELY` standard deviations of the difference. These standard deviations follow from the numbers of counted answers.
  Graded answers (a scanpath) are compared by their expected scores, on the same scale.

Both probabilities are computed alike (`hybrid/solving/answer_confidence.py`). A tool has the overall rate on its card
and the card's curve at the confidence of this answer; an MLLM has its prior accuracy and, if sampled, its share of the
votes. `--trust` measures both on other questions, and how informative the stated confidences are where they disagree.
Every number used is in the step of the trace, from which the decision can be recomputed; `docs/arbiter.md` has the
formulas.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from graphs._model_and_specialist import ModelAndSpecialist, Proposal
from hybrid.answers import parse
from hybrid.answers.comparing import as_json
from hybrid.answers.prior_accuracy import PriorAccuracy
from hybrid.core.off_loop import work_on_text
from hybrid.core.types import Json, Kind, Prompt, Reply
from hybrid.solving.answer_confidence import LIKELY
from hybrid.solving.controls import ORACLE
from hybrid.solving.rules import counted_route
from hybrid.solving.self_consistency import voted
from hybrid.solving.solver import SolverContext
from hybrid.solving.trust import MODEL, Measurement, Trust
from hybrid.tool.rules import SpecialistAnswer
from tools.rules import claimed


class Arbiter(ModelAndSpecialist):
    """MLLM and specialist in parallel, and a rule that decides between them."""

    samples_itself = True
    believes_cards = True

    async def propose(self, prompt: Prompt, ctx: SolverContext) -> Proposal:
        """Return the MLLM's answer, and its share of the votes if it is sampled."""

        async def once() -> Reply:
            return Reply((await super(Arbiter, self).propose(prompt, ctx)).text)

        vote = await voted(prompt, ctx.samples, once, ctx.log)
        return Proposal(vote.reply.text, vote.confidence)

    async def decide(
        self, prompt: Prompt, ctx: SolverContext, proposal: Proposal, specialist_answer: SpecialistAnswer | None
    ) -> str | None:
        """Apply the rule in this module's docstring and log the reason."""
        decision = await work_on_text(
            proposal.text, ruling, prompt, ctx.trust, ctx.prior_accuracy, proposal, specialist_answer
        )
        ctx.rule(decision.rule, decision.reason, decision.data)
        if decision.rule == "abstain":
            return None
        return (
            ctx.wording.format_answer(specialist_answer.answer)
            if specialist_answer and decision.rule == "adopt"
            else proposal.text
        )


@dataclass(frozen=True)
class Decision:
    """The decision between two answers, and its reason."""

    # `adopt` returns the specialist's answer, `abstain` no answer, and the others the proposal.
    rule: Literal["adopt", "agree", "keep", "abstain"]
    reason: str
    # Every number that the decision used.
    data: Mapping[str, Json] = field(default_factory=dict)


def ruling(
    prompt: Prompt,
    trust: Trust,
    prior_accuracy: PriorAccuracy,
    proposal: Proposal,
    specialist_answer: SpecialistAnswer | None,
) -> Decision:
    """Apply the rule in this module's docstring. Calls no model and no tool."""
    if specialist_answer is None:
        return Decision("keep", "the specialist gave no answer")
    proposed, answered = (
        _parsed(prompt, proposal.text),
        specialist_answer.letter or _parsed(prompt, specialist_answer.answer),
    )
    route, usual, guess = counted_route(prompt), prior_accuracy.usual(prompt), prior_accuracy.guess(prompt)
    # The specialist's confidence: the claim on its card, or its measurement on this route.
    key = (
        specialist_answer.tool,
        specialist_answer.finding.backend,
        counted_route(prompt, specialist_answer.tool),
    )
    specialist = trust.tool(key, claimed(specialist_answer, prompt, guess))
    mllm = trust.model(route, usual, proposal.confidence)
    model_measurement = trust.measured.get((*MODEL, route), Measurement(0.0, 0))
    data: dict[str, Json] = {
        "specialist_answer": specialist_answer.as_json(),
        "proposal": proposed,
        "tool": specialist.as_json(),
        "mllm": {"usual": usual, "right": model_measurement.right, "n": model_measurement.n, **mllm.as_json()},
    }
    if answered is None:
        return Decision("keep", f"{specialist_answer.tool} gives no readable {prompt.kind.value}", data)
    if proposed is None:
        reason = f"the proposal is no readable {prompt.kind.value}; {specialist_answer.tool} gives one"
        return Decision("adopt", reason, data)
    if proposed == answered:
        return Decision("agree", f"both say {proposed}", data)
    oracle = specialist_answer.finding.backend == ORACLE
    if prompt.kind is not Kind.SCANPATH and not oracle and _neither(specialist.worth, mllm.worth, guess):
        reason = (
            f"{specialist_answer.tool} is worth {specialist.worth:.2f}, the MLLM {mllm.worth:.2f}: less than a guess"
        )
        return Decision("abstain", reason, data)
    lead = specialist.lead_over(mllm)
    better = lead > LIKELY or oracle
    above = "above" if better else "not above" if lead <= 0 else "not clearly above"
    reason = f"{specialist_answer.tool} is worth {specialist.worth:.2f}, {above} the MLLM's {mllm.worth:.2f}"
    return Decision("adopt" if better else "keep", reason, data)


def _neither(p: float, m: float, guess: float) -> bool:
    """Return whether two differing answers, right with p and m, are both less likely to be right than a guess."""
    first_only, second_only = p * (1 - m), m * (1 - p)
    # Assume that errors are uniform over all other options, and that both miss the right one by different options.
    none = (1 - p) * (1 - m) * max(0.0, 1 - 2 * guess) / (1 - guess)
    return max(first_only, second_only) < guess * (first_only + second_only + none)


def _parsed(prompt: Prompt, text: str) -> Json:
    return as_json(parse(text, prompt.kind, prompt.choices).value)


SOLVER = Arbiter()
