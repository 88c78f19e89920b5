"""The cost of a call, only from `--model-arg price=IN/OUT[/CACHED[/WRITTEN]]` in US dollars per million tokens.

No table of prices is included, because a price that was not checked on the day of the run is worse than none: without
the option the cost is unknown (None), never 0.
"""

from __future__ import annotations

from hybrid.config import Price
from hybrid.core.messages import TokenUsage

# Price of a request in a batch relative to the ordinary price, at OpenAI, Anthropic and Google alike (2026).
BATCH_SHARE = 0.5


def cost_usd(usage: TokenUsage | None, price: Price | None, *, batched: bool = False) -> float | None:
    """Return the cost of a message's tokens in dollars; None if the price or the token counts are unknown."""
    if usage is None or price is None:
        return None
    cost = price.of(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0, usage.cache_write_tokens)
    return cost * BATCH_SHARE if batched else cost
