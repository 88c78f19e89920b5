import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.answers.scanpaths import parse_scanpath
from hybrid.core.types import Scanpath
from tests.tables import cases


@pytest.mark.parametrize(*cases(__file__, "test_reads", scanpath=Scanpath))
def test_reads(text: str, scanpath: Scanpath) -> None:
    assert parse_scanpath(text).value == scanpath


fractions = st.integers(0, 100).map(lambda v: v / 100)


@given(st.lists(st.tuples(fractions, fractions, st.integers(1, 5000)), min_size=1, max_size=12))
def test_every_scanpath_is_read_back(fixations: list[tuple[float, float, int]]) -> None:
    x, y, t = (list(values) for values in zip(*fixations, strict=True))
    expected = Scanpath(tuple(x), tuple(y), tuple(map(float, t)))
    lists = ", ".join(map(str, x)), ", ".join(map(str, y)), ", ".join(map(str, t))
    for text in (
        f"X = {x}\nY = {y}\nT = {t}",
        f'{{"X": {x}, "Y": {y}, "T": {t}}}',
        "X-coordinates:\n{}\nY-coordinates:\n{}\nDurations (ms):\n{}".format(*lists),
    ):
        for variant in (text, f"  {text}\n", f"**{text}**", f"`{text}`"):
            assert parse_scanpath(variant).value == expected


@pytest.mark.parametrize(*cases(__file__, "test_the_shortest_list_cuts_the_others"))
def test_the_shortest_list_cuts_the_others(x: str, y: str, t: str) -> None:
    scanpath = parse_scanpath(f"X = [{x}]\nY = [{y}]\nT = [{t}]")
    assert scanpath.value is not None
    assert {len(scanpath.value.x), len(scanpath.value.y), len(scanpath.value.t_ms)} == {1}
    assert scanpath.rule == "lists"
