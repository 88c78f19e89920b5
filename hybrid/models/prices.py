"""The cost of a call: `--model-arg price=IN/OUT[/CACHED]` in US dollars per million tokens, and nothing else.

No table of prices is shipped, because a price that was not checked on the day of the run is worse than none: without
the option the cost is unknown (None), never 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hybrid.errors import UsageError
from hybrid.messages import TokenUsage

PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens read (`input_usd`) and written (`output_usd`); reasoning counts as written.

    `cached_usd` is for those of the read ones that the provider had already; None where they cost what others do.
    """

    input_usd: float
    output_usd: float
    cached_usd: float | None = None

    def of(self, read: float, written: float, cached: float = 0.0) -> float:
        """Dollars for so many tokens; `cached` are among those read."""
        again = self.input_usd if self.cached_usd is None else self.cached_usd
        return ((read - cached) * self.input_usd + cached * again + written * self.output_usd) / PER


def parse_price(text: str) -> Price:
    """Read `IN/OUT` or `IN/OUT/CACHED`, such as `2.5/10/1.25`. Raises `UsageError` for anything but amounts from 0."""
    parts = text.split("/")
    try:
        amounts = [float(part) for part in parts]
    except ValueError:
        amounts = []
    if len(amounts) not in (2, 3) or not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
        raise UsageError(f"--model-arg price={text}: write IN/OUT or IN/OUT/CACHED, US dollars per million tokens")
    return Price(*amounts)


def cost_usd(usage: TokenUsage | None, price: Price | None) -> float | None:
    """Dollars for the tokens of a message; None where the price or the token counts are unknown."""
    if usage is None or price is None:
        return None
    return price.of(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0)
