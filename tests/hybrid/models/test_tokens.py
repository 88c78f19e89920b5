import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.models.providers import image_tokens


@pytest.mark.parametrize(
    ("provider", "model", "size", "detail", "tokens"),
    [
        # OpenAI's own worked examples: 1024 x 1024 and 2048 x 4096 at high detail, any size at low.
        ("openai", "gpt-4o", (1024, 1024), "high", 765),
        ("openai", "gpt-4o", (2048, 4096), "high", 1105),
        ("openai", "gpt-4o-2024-08-06", (4096, 8192), "low", 85),
        ("openai", "gpt-4o-mini", (512, 512), None, 2833 + 5667),
        # Anthropic's table: 200 x 200, 1000 x 1000.
        ("anthropic", "claude", (200, 200), None, 54),
        ("anthropic", "claude", (1000, 1000), None, 1334),
        # Google: 258 when both sides are at most 384, else for each tile of 768.
        ("google_genai", "gemini", (384, 300), None, 258),
        ("google_genai", "gemini", (1536, 700), None, 516),
    ],
)
def test_published_examples(provider: str, model: str, size: tuple[int, int], detail: str | None, tokens: int) -> None:
    assert image_tokens(provider, model, *size, detail) == tokens


def test_an_empty_image_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 x 5"):
        image_tokens("openai", "gpt-4o", 0, 5)


@given(
    st.sampled_from([("openai", "gpt-4o"), ("anthropic", "c"), ("google_genai", "g")]),
    st.integers(1, 10_000),
    st.integers(1, 10_000),
)
def test_estimates_are_positive_and_do_not_depend_on_orientation(who: tuple[str, str], w: int, h: int) -> None:
    tokens = image_tokens(*who, w, h)
    assert tokens is not None
    assert tokens > 0
    assert tokens == image_tokens(*who, h, w)
