"""The rules of similarity: the image that is most like the first in style, or in content."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.tool.rules import OneCall, Rule, later_image

# By route.
RULES: Mapping[str, Rule] = {
    "Art_Style": OneCall("similarity", later_image, lambda prompt: {"aspect": "style"}),
    "Visual_Similarity": OneCall("similarity", later_image, lambda prompt: {"aspect": "content"}),
}
