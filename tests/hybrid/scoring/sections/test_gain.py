"""The gain of tools in two parts: what adds up, what is concluded, and when nothing is."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import SectionResult
from hybrid.scoring.sections.gain import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity

Said = Mapping[str, str]


@pytest.fixture
def made(tmp_path: Path, made_up_runs: Any) -> Any:
    """The section of a real run with an MLLM alone, and of runs with controls."""
    count = iter(range(1000))

    def section(
        hybrid: Said,
        alone: Said | None = None,
        blank: Said | None = None,
        shuffled: Said | None = None,
        rule: Any = "wrong",
        **options: Any,
    ) -> SectionResult:
        folder = tmp_path / str(next(count))
        real = {"controller": hybrid} | ({"mllm": alone} if alone else {})
        paths = [made_up_runs.from_letters(folder / "real", real).path]
        for name, said in (("blank", blank), ("shuffled", shuffled)):
            if said:
                paths.append(made_up_runs.from_letters(folder / name, {"controller": said}, name).path)
        found = compare(compare_paths(paths, abstain=rule).solvers, ComparisonOptions(**options))
        rows = tuple(SECTION.rows(found))
        return SectionResult(SECTION, rows, SECTION.lead(found, rows))

    return section


def test_the_parts_by_hand(made: Any) -> None:
    said = ({"Jigsaw": "rrrr"}, {"Jigsaw": "wwru"}, {"Jigsaw": "rwra"})
    for rule, expected in (("wrong", (0.75, 0.25, 0.5)), ("chance", (0.625, 0.25, 0.375))):
        rows = made(*said, rule=rule).rows
        assert tuple(by_quantity(rows)[name].value for name in ("gain", "presence", "content")) == expected
        assert {row.none for row in rows} == {rule}
    assert [(row.a, row.b) for row in by_quantity(rows).values()] == [
        ("mllm", "controller"),
        ("mllm", "controller [blank]"),
        ("controller [blank]", "controller"),
    ]
    assert {(row.n, row.metric) for row in by_quantity(rows).values()} == {(4, "accuracy_macro")}
    assert by_quantity(rows, "Jigsaw")["gain"].metric == "accuracy"


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
