"""The settings of the second model, which describes images where they are shown as captions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hybrid.config.option import Option, option

# The settings that belong to the second model, which describes images, by the fields of its `ModelSettings`.
OF_CAPTIONER: Final[Mapping[str, Option]] = {
    "base_url": option("caption-url", "--setting"),
    "price": option("caption-price", "--setting"),
}
