"""The price of a model's tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass

TOKENS_PER_PRICE = 1_000_000
# How a price is written, for errors.
PRICE_FORMS = "IN/OUT, IN/OUT/CACHED or IN/OUT/CACHED/WRITTEN, US dollars per million tokens"


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million input tokens (`input_usd`) and output tokens (`output_usd`, including reasoning).

    `cached_usd` is the price of input tokens read from the provider's cache, `written_usd` that of tokens written to
    it; None if they cost the same as other input tokens.
    """

    input_usd: float
    output_usd: float
    cached_usd: float | None = None
    written_usd: float | None = None

    def of(self, read: float, output: float, cached: float = 0.0, stored: float = 0.0) -> float:
        """Return the cost in dollars of `read` input tokens and `output` output tokens.

        `cached` tokens (read from the cache) and `stored` tokens (written to it) are part of `read`.
        """
        cached_price = self.input_usd if self.cached_usd is None else self.cached_usd
        storing = self.input_usd if self.written_usd is None else self.written_usd
        new = (read - cached - stored) * self.input_usd
        return (new + cached * cached_price + stored * storing + output * self.output_usd) / TOKENS_PER_PRICE


def parse_price(text: str) -> Price:
    """Parse `IN/OUT`, `IN/OUT/CACHED` or `IN/OUT/CACHED/WRITTEN`, such as `3/15/0.3/3.75`.

    Raises:
        ValueError: anything but non-negative amounts.
    """
    parts = text.split("/")
    try:
        amounts = [float(part) for part in parts]
    except ValueError:
        amounts = []
    if len(amounts) not in (2, 3, 4) or not all(math.isfinite(amount) and amount >= 0 for amount in amounts):
        raise ValueError(f"write {PRICE_FORMS}")
    return Price(*amounts)
