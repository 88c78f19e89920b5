"""The specialist alone: the same tools and a fixed rule for each kind of question (`tools/rules/`), without an MLLM.

hybrid run blink --solver specialist --backend classical
"""

from __future__ import annotations

from collections.abc import Collection

from hybrid.core.types import Outcome, Prompt, Reply
from hybrid.solving.solver import Solver, SolverContext
from tools.rules import ask_specialists, tools_asked


class Specialist(Solver):
    """Answers if a rule and its tools decide, and abstains otherwise."""

    role = "specialist"

    def required_tools(self, benchmark: str, routes: Collection[str] | None = None) -> frozenset[str]:
        """Return the tools that the rules name."""
        del benchmark
        return tools_asked(routes)

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Return the specialist's answer in the requested form, or an abstention."""
        specialist_answer = await ask_specialists(prompt, ctx)
        if specialist_answer is None:
            ctx.rule("abstain", "no rule for this kind of question, or its tools do not decide")
            return Reply("", Outcome.ABSTAINED)
        ctx.rule(
            "specialist",
            f"{specialist_answer.tool} says {specialist_answer.answer}",
            {"specialist_answer": specialist_answer.as_json()},
        )
        return Reply(ctx.wording.format_answer(specialist_answer.answer))


SOLVER = Specialist()
