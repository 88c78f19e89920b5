"""Result only: the specialist's output is in the prompt, and the MLLM answers in one call, without a loop.

    hybrid run blink --solver result_only --model openai:gpt-4o

Its gain over the MLLM alone is the effect of the tool output itself; the controller's gain over it is the effect of
calling tools in a loop. This follows the ablation of that name in arXiv 2606.02357. If no rule or tool gives an answer,
the question is asked as in `mllm`.
"""

from __future__ import annotations

from collections.abc import Collection
from types import MappingProxyType

from hybrid.config import Limits
from hybrid.core.errors import ToolError
from hybrid.core.types import Prompt, Reply
from hybrid.solving.call_estimate import CallEstimate, CallPath, certain
from hybrid.solving.empty_replies import EMPTY, words_of
from hybrid.solving.evidence import EVIDENCE, evidence
from hybrid.solving.solver import Solver, SolverContext
from hybrid.tool.rules import SpecialistAnswer
from tools.rules import ask_specialists, has_rule, tools_asked


class ResultOnly(Solver):
    """An MLLM that gets the specialist's output once, before it answers."""

    needs_model = True
    needs_live = True
    names_images = True
    texts = MappingProxyType({"empty": EMPTY, "evidence": EVIDENCE})

    def call_estimate(self, prompt: Prompt, limits: Limits) -> CallEstimate:
        """Estimate one call, with one tool output if a specialist has a rule for the prompt."""
        del limits
        plain, with_finding = CallPath(1), CallPath(1, findings=1)
        return CallEstimate(plain, with_finding, with_finding) if has_rule(prompt) else certain(plain)

    def required_tools(self, benchmark: str, routes: Collection[str] | None = None) -> frozenset[str]:
        """Return the tools that the specialist's rules name."""
        del benchmark
        return tools_asked(routes)

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Return the model's text about the prompt and the tool output; a failed tool adds nothing."""
        answer = await self._find_answer(prompt, ctx)
        parts = [] if answer is None else evidence(prompt, ctx, answer.finding)
        return Reply(await words_of(ctx.model, [ctx.message(prompt, *parts)], ctx.log))

    async def _find_answer(self, prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
        try:
            answer = await ask_specialists(prompt, ctx)
        except ToolError as error:
            ctx.rule("no finding", str(error), fault=error.fault)
            return None
        if answer is None:
            ctx.rule("no finding", "no rule for this kind of question, or its tools do not decide")
        else:
            ctx.rule("evidence", f"{answer.tool} says {answer.answer}", {"specialist_answer": answer.as_json()})
        return answer


SOLVER = ResultOnly()
