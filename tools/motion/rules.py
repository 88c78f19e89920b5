"""The rule of motion: the side that the camera moved to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hybrid.tool.rules import OneCall, Rule
from hybrid.types import Finding, Prompt

# How choices say where a camera went; clockwise, seen from above, is to its left.
SIDES: Final = {
    "left": r"(?i)\bleft\b|(?<!counter)(?<!anti)(?<!counter[- ])(?<!anti[- ])clockwise",
    "right": r"(?i)\bright\b|(?:counter|anti)[- ]?clockwise",
}


def side(finding: Finding, prompt: Prompt) -> str | None:
    """The side that the camera moved to; choices name sides, or turns in words."""
    moved = finding.data.get("moved")
    return SIDES.get(moved) if isinstance(moved, str) else None


# By route.
RULES: Mapping[str, Rule] = {"Multi-view_Reasoning": OneCall("motion", side)}
