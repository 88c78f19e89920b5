"""MM-SAP's rule, which uses detection, ocr and attributes; options are in words, and one may be a refusal.

    hybrid run mm_sap --data DIR --solver specialist --weights detection=DIR_OR_ID --weights attributes=DIR_OR_ID

It uses only learned backends: without weights it abstains.
"""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.tool.rules import Rule
from tools.rules._shared.options_in_words import one_of

# Rules by kind of question.
RULES: Mapping[str, Rule] = {"choice": one_of}
