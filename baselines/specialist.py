"""The specialist alone: the same tools, a fixed rule for each kind of question (`tools/rules/`), no MLLM.

hybrid run blink --solver specialist --backend classical
"""

from __future__ import annotations

from collections.abc import Collection

from hybrid.solving.kit import Kit, Solver
from hybrid.types import Outcome, Prompt, Reply
from tools.rules import testify, tools_asked


class Specialist(Solver):
    """Answers where a rule and its tools decide, and abstains everywhere else."""

    role = "specialist"

    def asks(self, benchmark: str, routes: Collection[str] | None = None) -> frozenset[str]:
        """Those that the rules name."""
        return tools_asked(benchmark, routes)

    async def ask(self, prompt: Prompt, kit: Kit) -> Reply:
        """The testimony in the form that is asked for, or an abstention."""
        testimony = await testify(prompt, kit)
        if testimony is None:
            kit.rule("abstain", "no rule for this kind of question, or its tools do not decide")
            return Reply("", Outcome.ABSTAINED)
        kit.rule("testify", f"{testimony.tool} says {testimony.answer}", {"testimony": testimony.as_json()})
        return Reply(kit.wording.written(testimony.answer))


SOLVER = Specialist()
