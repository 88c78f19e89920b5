import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.models.providers import image_tokens
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_published_examples"))
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
