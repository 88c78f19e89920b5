"""Calls the rules of the specialists in tests."""

from typing import Any

from hybrid.core.types import Finding, Prompt
from tools.rules import ask_specialists


async def ask_rules(fakes: Any, prompt: Prompt, *findings: Finding | Exception) -> Any:
    """Return the rules' answers, and the calls that they made, for these tool outputs."""
    ctx = fakes.context_of(prompt, findings=list(findings))
    return await ask_specialists(prompt, ctx), ctx.tool.calls
