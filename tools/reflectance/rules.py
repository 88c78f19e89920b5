"""The rule of reflectance: which drawn point lies on the darker surface, or that both are the same."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hybrid.tool.rules import OneCall, Rule, drawn_labels
from hybrid.types import Finding, Prompt


def darker_surface(finding: Finding, prompt: Prompt) -> str | None:
    """The letter of the darker surface, or that both are the same."""
    if finding.data.get("same") is True:
        return r"(?i)\b(?:same|equal(?:ly)?)\b"
    darker = finding.data.get("darker")
    return rf"\b{re.escape(darker)}\b.*\bdarker\b" if isinstance(darker, str) else None


# By route.
RULES: Mapping[str, Rule] = {"Relative_Reflectance": OneCall("reflectance", darker_surface, drawn_labels)}
