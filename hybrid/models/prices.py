"""What a call costs: `--model-arg price=IN/OUT` in US dollars per million tokens, and nothing else.

No table of prices is shipped, because a price that nobody has checked
on the day of the run is worse than none: without the option the cost is unknown (None), never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.errors import UsageError
from hybrid.messages import TokenUsage

PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens read (`input_usd`) and written (`output_usd`); reasoning counts as written."""

    input_usd: float
    output_usd: float

    def of(self, read: float, written: float) -> float:
        """Dollars for so many tokens."""
        return (read * self.input_usd + written * self.output_usd) / PER


def parse_price(text: str) -> Price:
    """Read `IN/OUT`, for instance `2.5/10`. Raises `UsageError` for anything but two amounts of at least 0."""
    parts = text.split("/")
    try:
        amounts = [float(part) for part in parts]
    except ValueError:
        amounts = []
    if len(amounts) != 2 or not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
        raise UsageError(f"--model-arg price={text}: write IN/OUT in US dollars per million tokens, such as 2.5/10")
    return Price(*amounts)


def cost_usd(usage: TokenUsage | None, price: Price | None) -> float | None:
    """Dollars for the tokens of a message; None where the price or the token counts are unknown."""
    if usage is None or price is None:
        return None
    return price.of(usage.input_tokens, usage.output_tokens)
