"""Verify: the MLLM proposes, the specialist answers, and the MLLM sees the evidence and decides.

    hybrid run blink --solver verify --model openai:gpt-4o

It takes one round at a fixed cost: two model calls and the tool calls of one rule. If no rule or tool gives an answer,
the proposal is kept and the second call is not made.
"""

from __future__ import annotations

from types import MappingProxyType

from graphs._model_and_specialist import ModelAndSpecialist, Proposal
from hybrid.config import Limits
from hybrid.core.messages import shortened
from hybrid.core.types import Prompt
from hybrid.solving.call_estimate import CallEstimate, CallPath, certain
from hybrid.solving.empty_replies import words_of
from hybrid.solving.evidence import EVIDENCE, evidence
from hybrid.solving.solver import SolverContext
from hybrid.tool.rules import SpecialistAnswer
from tools.rules import has_rule

DECIDE = "Before you saw this, your answer was: {proposal}\nDecide anew. The tool can be wrong, and so could you."
# Assumed share of prompts to which a specialist with a rule for the question gives an answer. With only weight-free
# backends, the specialists answered 59 of 80 generated questions of BLINK and HVSBench, and none of MVP-Bench and
# MM-SAP.
SHARE_WITH_EVIDENCE = 0.5
ASSUMED = "if a specialist has a rule for the question, it finds something for half of the prompts: a second call"


class Verify(ModelAndSpecialist):
    """An MLLM that is shown evidence once."""

    needs_live = True
    names_images = True
    texts = MappingProxyType({**ModelAndSpecialist.texts, "evidence": EVIDENCE, "decide": DECIDE})

    def call_estimate(self, prompt: Prompt, limits: Limits) -> CallEstimate:
        """Estimate the proposal, and a second call with one tool output if a specialist has a rule for the prompt."""
        low, usual = CallPath(1), CallPath(2, findings=1)
        return CallEstimate(low, usual, usual, SHARE_WITH_EVIDENCE, ASSUMED) if has_rule(prompt) else certain(low)

    async def decide(
        self, prompt: Prompt, ctx: SolverContext, proposal: Proposal, specialist_answer: SpecialistAnswer | None
    ) -> str:
        """Show the evidence with the first answer and ask again; without evidence the proposal is kept."""
        if specialist_answer is None:
            ctx.rule("keep", "there is no evidence to show")
            return proposal.text
        ctx.rule(
            "evidence",
            f"{specialist_answer.tool} says {specialist_answer.answer}",
            {"specialist_answer": specialist_answer.as_json()},
        )
        parts = evidence(prompt, ctx, specialist_answer.finding)
        message = ctx.message(prompt, *parts, DECIDE.format(proposal=shortened(proposal.text)))
        return await words_of(ctx.model, [message], ctx.log)


SOLVER = Verify()
