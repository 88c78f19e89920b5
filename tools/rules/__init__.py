"""Answers of the specialists alone: one rule per route. Rules of one tool are next to it, those of several here.

    answer = await ask_specialists(prompt, ctx)      # a SpecialistAnswer, or None for an abstention

`ask_specialists` looks up the prompt's route (`hybrid/solving/rules.py`), calls the tools of that rule and turns their
`data` (never their text) into a reply of the prompt's kind. A rule names the tools that it may call: a run sets up only
these (`tools_asked`). A route without a rule, or an undecided tool output, is an abstention.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from hybrid.core.errors import HybridError, NoBackend, ToolError
from hybrid.core.types import LETTERS, Finding, Json, Kind, Prompt
from hybrid.plugins.registry import load
from hybrid.solving.answer_confidence import AnswerConfidence
from hybrid.solving.controls import ORACLE, ORACLE_ANSWER
from hybrid.solving.rules import table
from hybrid.solving.solver import SolverContext
from hybrid.solving.trust import claimed_by
from hybrid.tool import Tool
from hybrid.tool.rules import SpecialistAnswer


def has_rule(prompt: Prompt) -> bool:
    """Return whether a rule exists for the prompt's route."""
    return prompt.route in table().rules


def tools_asked(routes: Collection[str] | None = None) -> frozenset[str]:
    """Return the names of the tools that may be called for prompts of some routes; None for all routes.

    A route without a rule adds nothing. Tools of plug-ins are included if their rule applies.

    Raises:
        UsageError: two plug-in tools have a rule for the same route.
    """
    rules_table = table()
    rules_table.refuse_two(routes)
    return frozenset(
        tool
        for route, rule in rules_table.rules.items()
        if routes is None or route in routes
        for tool in (*rule.tools, *rules_table.outside.get(route, ()))
    )


async def ask_specialists(prompt: Prompt, ctx: SolverContext) -> SpecialistAnswer | None:
    """Return the specialists' answer, or None for an abstention.

    A tool that has neither weights nor a weight-free backend is an abstention, not a fault.

    Raises:
        ToolError: a tool cannot answer.
        LookupError: the rule calls a tool that it does not name.
    """
    rules_table = table()
    rule = rules_table.rules.get(prompt.route)
    if rule is None:
        return None

    async def call(name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        """Call a tool of the context, if the rule names it. An oracle's answer ends the rule."""
        if name not in rule.tools:
            allowed = ", ".join(rule.tools) or "none"
            raise LookupError(f"the rule for {prompt.route!r} asks {name}, and names only {allowed}")
        finding = await ctx.tool(name, images, args)
        answer = finding.data.get(ORACLE_ANSWER)
        if finding.backend == ORACLE and isinstance(answer, str):
            raise _OracleSpoke(name, finding, answer)
        return finding

    try:
        return await rule(prompt, replace(ctx, tool=call))
    except _OracleSpoke as spoke:
        letter = re.search(r"\(([A-Z])\)", spoke.answer) if prompt.kind is Kind.CHOICE else None
        place = LETTERS.index(letter[1]) if letter else None
        return SpecialistAnswer(spoke.answer, spoke.tool, spoke.finding, place, 1.0)
    except NoBackend as error:
        ctx.rule("no backend", str(error))
        return None
    except Exception as error:
        # An error in a plug-in tool's rule fails only its own answer.
        if isinstance(error, HybridError) or prompt.route not in rules_table.outside:
            raise
        owner = rules_table.outside[prompt.route][0]
        raise ToolError(f"{owner}, its rule for {prompt.route!r}: {type(error).__name__}: {error}") from error


def claimed(specialist_answer: SpecialistAnswer, prompt: Prompt, guess: float) -> AnswerConfidence:
    """Return the confidence of the answer before any measurement: see `hybrid.solving.trust.claimed_by`.

    `guess` is the expected score of a guess at this prompt, 0..1. An oracle is always right. A tool's confidence in a
    scanpath is not comparable with its score, so it is ignored.
    """
    if specialist_answer.finding.backend == ORACLE:
        return AnswerConfidence(1.0)
    tool: Tool = load("tools", specialist_answer.tool)
    confidence = None if prompt.kind is Kind.SCANPATH else specialist_answer.confidence
    return claimed_by(tool, specialist_answer.finding.backend, confidence, guess, on_card=specialist_answer.on_card)


class _OracleSpoke(Exception):
    """Raised when an oracle tool was called: its answer needs no rule."""

    def __init__(self, tool: str, finding: Finding, answer: str) -> None:
        super().__init__(answer)
        self.tool, self.finding, self.answer = tool, finding, answer
