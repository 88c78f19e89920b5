"""The rule of depth: the nearest of the drawn points."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.tool.rules import OneCall, Rule, drawn_labels, letter

# By route.
RULES: Mapping[str, Rule] = {
    "Relative_Depth": OneCall("depth", letter("nearer"), drawn_labels),
}
