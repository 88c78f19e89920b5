"""The settings of the second model, which describes images where they are shown as captions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hybrid.config.option import Option

OF_CAPTIONER: Final[Mapping[str, Option]] = {
    "base_url": Option(
        "caption-url",
        "its OpenAI-compatible server, as --base-url is the model's",
        parent="--setting",
        values=("URL",),
        pattern=r"\S+",
    ),
    "price": Option(
        "caption-price",
        "its price in USD per million tokens, for budgets of cost",
        parent="--setting",
        values=("IN/OUT",),
        pattern=r"\S+",
    ),
}
"""The settings that belong to the second model, which describes images, by the fields of its `ModelSettings`."""
