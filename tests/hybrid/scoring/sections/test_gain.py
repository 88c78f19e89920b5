"""The gain of tools in two parts: what adds up, what is concluded, and when nothing is."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.gain import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity

LETTERS = st.text("rwauf", min_size=6, max_size=6)


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory, made_up_runs: Any) -> Any:
    """Alone, blank and hybrid over four puzzles and two counts, answering as they are told."""
    folder, said = tmp_path_factory.mktemp("sides"), {"Jigsaw": "rrrr", "Counting": "rr"}
    made_up_runs.from_letters(folder / "real", {"controller": said, "mllm": said})
    made_up_runs.from_letters(folder / "blank", {"controller": said}, "blank")
    hybrid, alone, blank = compare_paths([folder / "real", folder / "blank"]).solvers
    return lambda *words: [made_up_runs.answering(*pair) for pair in zip((hybrid, alone, blank), words, strict=True)]


@settings(max_examples=60)
@given(LETTERS, LETTERS, LETTERS)
def test_presence_and_content_add_up_to_the_gain(sides: Any, a: str, b: str, c: str) -> None:
    """Over all questions and within each task, whatever was failed or not answered."""
    rows = tuple(SECTION.rows(compare(sides(a, b, c))))
    kept = {place for place in range(6) if "f" not in a[place] + b[place] + c[place]}
    assert bool(rows) == bool(kept)
    if kept:
        assert {row.n for row in rows if not row.group} == {len(kept)}
    for group in {row.group for row in rows}:
        own = by_quantity(rows, group)
        gain, presence, content = (own[name].value or 0.0 for name in ("gain", "presence", "content"))
        assert presence + content == pytest.approx(gain, abs=1e-15)
