"""The cost of a call: `--model-arg price=IN/OUT[/CACHED[/WRITTEN]]` in US dollars per million tokens, and nothing else.

No table of prices is shipped, because a price that was not checked on the day of the run is worse than none: without
the option the cost is unknown (None), never 0.
"""

from __future__ import annotations

from hybrid.config import Price
from hybrid.core.messages import TokenUsage

# Of the ordinary price what a request in a batch costs, at OpenAI, Anthropic and Google alike (2026).
BATCH_SHARE = 0.5


def cost_usd(usage: TokenUsage | None, price: Price | None, *, batched: bool = False) -> float | None:
    """Dollars for the tokens of a message; None where the price or the token counts are unknown."""
    if usage is None or price is None:
        return None
    cost = price.of(usage.input_tokens, usage.output_tokens, usage.cached_tokens or 0, usage.cache_write_tokens)
    return cost * BATCH_SHARE if batched else cost
