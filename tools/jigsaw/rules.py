"""The rule of jigsaw: the image that completes the first."""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.tool.rules import OneCall, Rule, later_image

# By route.
RULES: Mapping[str, Rule] = {
    "Jigsaw": OneCall("jigsaw", later_image),
}
