import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers import parse
from hybrid.answers.scanpaths import Scanpath
from hybrid.answers.views import ViewPlan
from hybrid.core.types import Kind
from tests.tables import stored

FOUR = ("first", "second", "third", "fourth")
KINDS = st.sampled_from(list(Kind))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Answer: (B)", "choice", "B"),
        ("Answer: yes", "yes_no", "yes"),
        ("Answer: 5", "integer", 5),
        ("Answer: DBCA", "order", "DBCA"),
        ("X = [0.5]\nY = [0.4]\nT = [200]", "scanpath", Scanpath((0.5,), (0.4,), (200.0,))),
        ("Answer: 1, 3", "views", frozenset({1, 3})),
        ("no", "continue", "no"),
        ('{"part": "2"}', "view_plan", ViewPlan(frozenset({2}), None, None)),
        (" free text\n", "free", "free text"),
    ],
)
def test_each_kind(text: str, kind: str, value: object) -> None:
    assert parse(text, kind, FOUR).value == value
    assert parse(text, Kind(kind), FOUR).value == value


def test_views_count_the_parts() -> None:
    assert parse("5", "views", ("",) * 6).value == {5}
    assert parse("5", "views").value is None


def test_an_unknown_kind_is_an_error() -> None:
    with pytest.raises(ValueError, match="essay"):
        parse("x", "essay")


@given(st.text(alphabet=" \t\n\r\u00a0\u3000\u200b*_`"), KINDS)
def test_an_empty_reply_is_never_an_answer(text: str, kind: Kind) -> None:
    blank = text if kind is not Kind.FREE else "".join(c for c in text if c.isspace())
    assert parse(blank, kind, FOUR).value is None


pieces = stored(__file__, "pieces")
replies = st.text() | st.lists(st.sampled_from([*pieces, '{"part": "1"}', "upper left", "**", "_", "not"])).map(
    " ".join
)


@given(replies, KINDS.filter(lambda kind: kind is not Kind.FREE))
def test_spelling_around_a_reply_does_not_matter(text: str, kind: Kind) -> None:
    expected = parse(text, kind, FOUR)
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    for variant in (f" \n{text}\t", f"**{text}**", f"_{text}_", f"`{text}`", wide):
        assert parse(variant, kind, FOUR) == expected
