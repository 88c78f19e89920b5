"""Token counts under every name that servers use; a count that a reply lacks is unknown."""

import json
from typing import Any

import pytest

from hybrid.config import parse_price
from hybrid.core.messages import TokenUsage
from hybrid.models import CallKey
from hybrid.models.chat_completions.codec import message, readable
from hybrid.models.chat_completions.stream import Assembly
from hybrid.models.usage import read_usage
from hybrid.solving.budgets import cost_usd
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "counts", expected=lambda row: None if row is None else TokenUsage(**row)))
def test_counts_are_read_by_the_names_of_their_wire(
    wire: str, counts: Any, is_empty: bool, expected: TokenUsage | None
) -> None:
    assert read_usage(wire, counts, is_empty=is_empty) == expected


CHOICE = {"message": {"role": "assistant", "content": "(A)"}, "finish_reason": "stop"}
COUNTS = {"prompt_tokens": 90, "completion_tokens": 9, "total_tokens": 99}


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [CHOICE], "usage": COUNTS},
        {"choices": [CHOICE], "usage": None, "x_groq": {"usage": COUNTS}},
        {"choices": [{**CHOICE, "usage": COUNTS}], "usage": None},
        {"choices": [CHOICE, {"usage": COUNTS}]},
        {"choices": [{**CHOICE, "message": {**CHOICE["message"], "usage": COUNTS}}], "usage": {"prompt_tokens": 0}},
        {"choices": [CHOICE], "timings": {"cache_n": 60, "prompt_n": 30, "predicted_n": 9}},
    ],
)
def test_counts_are_found_wherever_a_reply_has_them(reply: Any) -> None:
    usage = message(readable(json.dumps(reply).encode()), CallKey("q")).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (90, 9)


@pytest.mark.parametrize(
    "events",
    [
        [COUNTS, {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}],
        [{"prompt_tokens": 90, "completion_tokens": 1}, {"completion_tokens": 9}],
        [{"prompt_tokens": 90}, {"completion_tokens": 9}, None],
        [COUNTS, {"prompt_tokens": 45, "completion_tokens": 4, "total_tokens": 49}],
    ],
)
def test_of_the_counts_in_a_stream_the_largest_hold(events: list[Any]) -> None:
    stream = Assembly()
    stream.feed(b'data: {"choices": [{"delta": {"content": "(A)"}, "finish_reason": "stop"}]}\n\n')
    for usage in events:
        stream.feed(b"data: " + json.dumps({"choices": [], "usage": usage}).encode() + b"\n\n")
    usage = message(readable(stream.body()), CallKey("q")).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (90, 9)


def test_tokens_put_into_the_cache_have_a_price_of_their_own() -> None:
    usage = TokenUsage(1_000_000, 0, cached_tokens=500_000, cache_write_tokens=250_000)
    assert cost_usd(usage, parse_price("4/8/1/6")) == pytest.approx(1.0 + 0.5 + 1.5)
    assert cost_usd(usage, parse_price("4/8/1")) == pytest.approx(2.0 + 0.5)
    assert cost_usd(None, parse_price("4/8/1")) is None
