from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.answers.views import (
    ViewPlan,
    official_continue,
    official_keep_shift,
    official_part,
    official_views,
    parse_view_plan,
    parse_views,
)
from hybrid.core.types import Kind
from tests.tables import cases


def plan_of(parts: Sequence[Sequence[int] | None]) -> ViewPlan:
    """Return a plan from its three lists of parts."""
    return ViewPlan(*(None if part is None else frozenset(part) for part in parts))


@pytest.mark.parametrize(*cases(__file__, "test_strict_views", views=frozenset))
def test_strict_views(text: str, views: set[int]) -> None:
    assert parse_views(text).value == views


@pytest.mark.parametrize(*cases(__file__, "test_each_rule_of_views", views=frozenset))
def test_each_rule_of_views(text: str, views: set[int], rule: str) -> None:
    result = parse_views(text)
    assert (result.value, result.rule) == (views, rule)


def test_positions_need_four_parts() -> None:
    assert parse_views("upper left", 6).value is None
    assert parse_views("5, 6", 6).value == {5, 6}


@pytest.mark.parametrize(*cases(__file__, "test_official_views", views=frozenset))
def test_official_views(text: str, views: set[int]) -> None:
    result = official_views(text)
    assert (result.value, result.rule) == (views, "official")


@pytest.mark.parametrize("text", ["lower", "1 and 3", "2nd part"])
def test_official_views_stop_with_an_error(text: str) -> None:
    assert official_views(text).value is None


def test_continue() -> None:
    assert parse("No.", Kind.CONTINUE).value == "no"
    assert parse("Yes, I need more.", Kind.CONTINUE).value == "yes"
    assert parse("", Kind.CONTINUE).value is None
    assert not official_continue("NO")
    assert official_continue("No.")
    assert official_continue("")


@pytest.mark.parametrize(*cases(__file__, "test_strict_plan", plan=plan_of))
def test_strict_plan(text: str, plan: ViewPlan) -> None:
    assert parse_view_plan(text).value == plan
    assert parse_view_plan(f"  **{text}**\n").value == plan


def test_a_plan_holds_something() -> None:
    with pytest.raises(ValueError, match="at least one"):
        ViewPlan(None, None, None)


@pytest.mark.parametrize(*cases(__file__, "test_official_part"))
def test_official_part(text: str, part: tuple[int, ...]) -> None:
    assert official_part(text) == part


@pytest.mark.parametrize(*cases(__file__, "test_official_keep_shift"))
def test_official_keep_shift(text: str, views: tuple[int, ...] | None) -> None:
    assert official_keep_shift(text, (1, 2)) == views


@given(st.sets(st.integers(1, 9), min_size=1), st.sampled_from([", ", ",", " and ", " "]))
def test_every_selection_is_read_back(views: set[int], gap: str) -> None:
    text = gap.join(map(str, sorted(views)))
    for variant in (text, f"`{text}`", f"_{text}_", f" {text}.\n"):
        assert parse_views(variant, 9).value == views


@pytest.mark.parametrize(*cases(__file__, "test_a_plan_is_the_whole_object_between_its_braces", plan=plan_of))
def test_a_plan_is_the_whole_object_between_its_braces(text: str, plan: ViewPlan) -> None:
    view_plan = parse_view_plan(text)
    assert (view_plan.value, view_plan.rule) == (plan, "json")
