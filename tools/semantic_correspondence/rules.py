"""The rules of semantic correspondence: the drawn candidate that is the same part, or serves the same action."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.tool.rules import OneCall, Rule, drawn_labels, letter

# By route.
RULES: Mapping[str, Rule] = {
    "Functional_Correspondence": OneCall("semantic_correspondence", letter(), drawn_labels),
    "Semantic_Correspondence": OneCall("semantic_correspondence", letter(), drawn_labels),
}
