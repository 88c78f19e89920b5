import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import ModelSettings, Price, parse_model_args
from hybrid.core.errors import UsageError
from hybrid.core.messages import TokenUsage
from hybrid.solving.budgets import cost_usd
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_a_wrong_model_arg_is_named", list))
def test_a_wrong_model_arg_is_named(items: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_model_args(items)


@given(st.lists(st.text(max_size=12), max_size=4))
def test_any_model_args_are_read_or_refused(items: list[str]) -> None:
    try:
        args = parse_model_args(items)
    except UsageError:
        return
    assert set(args.extra) <= {item.partition("=")[0] for item in items}


@pytest.mark.parametrize(
    ("settings", "message"), [*cases(__file__, "out_of_range")[1], ({"temperature": float("nan")}, "--temperature")]
)
def test_settings_out_of_range_are_named(settings: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ModelSettings(**settings)  # type: ignore[arg-type]


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.floats(0, 1000), st.floats(0, 1000))
def test_cost_is_linear_in_tokens(tokens_in: int, tokens_out: int, price_in: float, price_out: float) -> None:
    usage = TokenUsage(tokens_in, tokens_out)
    cost = cost_usd(usage, Price(price_in, price_out))
    assert cost == pytest.approx(tokens_in / 1e6 * price_in + tokens_out / 1e6 * price_out)
