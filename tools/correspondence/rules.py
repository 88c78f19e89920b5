"""The rule of correspondence: the drawn candidate that is the point REF."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.tool.rules import OneCall, Rule, letter

# By route.
RULES: Mapping[str, Rule] = {
    "Visual_Correspondence": OneCall("correspondence", letter()),
}
