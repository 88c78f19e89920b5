"""Answers of the specialists alone: one rule per route, next to its tool, or here if it uses several tools.

    answer = await ask_specialists(prompt, ctx)      # a SpecialistAnswer, or None for an abstention

`ask_specialists` looks up the prompt's routes (`hybrid/solving/rules.py`) and asks their rules in order until one
answers. A rule calls tools and turns their `data` (never their text) into a reply of the prompt's kind. Each rule names
the tools that it may call, and a run sets up these tools and no others (`tools_asked`). A route without a rule, or a
finding that does not decide, is an abstention.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.core.errors import HybridError, NoBackend, ToolError
from hybrid.core.types import LETTERS, Finding, Json, Kind, Prompt
from hybrid.plugins.registry import load
from hybrid.solving.answer_confidence import AnswerConfidence
from hybrid.solving.controls import ORACLE, ORACLE_ANSWER
from hybrid.solving.rules import RuleEntry, handed_in_tool, table
from hybrid.solving.solver import SolverContext
from hybrid.solving.trust import claimed_by
from hybrid.tool import Tool
from hybrid.tool.rules import SpecialistAnswer

if TYPE_CHECKING:
    from hybrid.tool import Args


def has_rule(prompt: Prompt) -> bool:
    """Return whether `ask_specialists` would ask a tool about a prompt of this route."""
    return bool(table().rules_for(prompt))


def tools_asked(routes: Collection[str] | None = None) -> frozenset[str]:
    """Return the names of the tools that may be called for prompts of some routes (None: all routes).

    A route without a rule adds nothing. An external tool whose rule is asked is included.
    """
    return table().tools_asked(routes)


async def ask_specialists(prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
    """Return the answer of the first rule that gives one, or None for an abstention.

    A tool that has neither weights nor a weight-free backend is an abstention, not a fault.

    Raises:
        ToolError: a tool cannot answer; no further rule is asked.
        LookupError: a rule asks a tool that it does not name.
    """
    entries = table().rules_for(prompt)
    for place, entry in enumerate(entries, 1):
        if (answer := await _ask_rule(entry, prompt, ctx)) is not None:
            return answer
        if place < len(entries):
            owner = f"that of {entry.owner}" if entry.owner else "the project's"
            ctx.rule("passed on", f"the rule for {entry.route!r}, {owner}, gives no answer")
    return None


async def _ask_rule(entry: RuleEntry, prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
    """Return the answer of one rule. Raises what `ask_specialists` raises."""

    async def call(name: str, images: Sequence[str], args: Mapping[str, Json] | Args) -> Finding:
        """Call a tool; fail if the rule does not name it. An oracle's answer ends the rule."""
        if name not in entry.rule.tools:
            allowed = ", ".join(entry.rule.tools) or "none"
            raise LookupError(f"the rule for {entry.route!r} asks {name}, and names only {allowed}")
        finding = await ctx.tool(name, images, args)
        answer = finding.data.get(ORACLE_ANSWER)
        if finding.backend == ORACLE and isinstance(answer, str):
            raise _OracleSpoke(name, finding, answer)
        return finding

    try:
        return await entry.rule(prompt, replace(ctx, tool=call))
    except _OracleSpoke as spoke:
        letter = re.search(r"\(([A-Z])\)", spoke.answer) if prompt.kind is Kind.CHOICE else None
        place = LETTERS.index(letter[1]) if letter else None
        return SpecialistAnswer(spoke.answer, spoke.tool, spoke.finding, place, 1.0)
    except NoBackend as error:
        ctx.rule("no backend", str(error))
        return None
    except Exception as error:
        # An error in an external tool's code costs only that tool's answer.
        if isinstance(error, HybridError) or not entry.owner:
            raise
        failed = f"{entry.owner}: the rule for {entry.route!r} failed"
        raise ToolError(f"{failed}: {type(error).__name__}: {error}") from error


def claimed(specialist_answer: SpecialistAnswer, prompt: Prompt, guess: float) -> AnswerConfidence:
    """Return the confidence of the answer before any measurement: see `hybrid.solving.trust.claimed_by`.

    `guess` is the expected score of a guess at this prompt, 0..1. An oracle is always right. A tool's confidence in a
    scanpath is not comparable with its score, so it is ignored.
    """
    if specialist_answer.finding.backend == ORACLE:
        return AnswerConfidence(1.0)
    tool: Tool = handed_in_tool(specialist_answer.tool) or load("tools", specialist_answer.tool)
    confidence = None if prompt.kind is Kind.SCANPATH else specialist_answer.confidence
    return claimed_by(tool, specialist_answer.finding.backend, confidence, guess, on_card=specialist_answer.on_card)


class _OracleSpoke(Exception):
    """Raised when an oracle tool was called: its answer needs no rule."""

    def __init__(self, tool: str, finding: Finding, answer: str) -> None:
        super().__init__(answer)
        self.tool, self.finding, self.answer = tool, finding, answer
