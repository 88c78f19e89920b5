"""Abstentions of rules."""

from __future__ import annotations

from hybrid.tool.rules import RuleContext, SpecialistAnswer


def abstain(ctx: RuleContext, name: str, text: str) -> SpecialistAnswer | None:
    """No answer; the reason is in the trace."""
    ctx.rule(name, text)
    return None
