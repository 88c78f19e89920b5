"""The gain of tools in two parts: what adds up, what is concluded, and when nothing is."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import EXACTLY, SectionResult
from hybrid.scoring.sections.gain import SECTION
from tests.hybrid.scoring.sections.rows import by_quantity

Said = Mapping[str, str]
OTHER = "other questions' findings"


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


def test_the_shuffled_control_is_on_questions_of_its_own(made: Any) -> None:
    """A question that only the shuffled control failed stays in the gain."""
    rows = made({"Jigsaw": "rrrr"}, {"Jigsaw": "wwrr"}, {"Jigsaw": "wrrw"}, {"Jigsaw": "frww"}, allow_failed=True).rows
    found = by_quantity(rows)
    assert (found["gain"].value, found[OTHER].value) == (0.5, pytest.approx(-1 / 3))
    assert {name: row.n for name, row in found.items()} == {"gain": 4, "presence": 4, "content": 4, OTHER: 3}
    assert found[OTHER].note == f"left out: 1 that one of them failed; {EXACTLY}"
    assert found["gain"].note == EXACTLY


def test_without_a_blank_control_there_is_no_row(made: Any) -> None:
    assert made({"Jigsaw": "rr"}, {"Jigsaw": "rw"}).rows == ()
    assert made({"Jigsaw": "rr"}, {"Jigsaw": "rw"}, None, {"Jigsaw": "rw"}).rows == ()


def test_without_the_mllm_alone_there_is_the_content(made: Any) -> None:
    found = made({"Jigsaw": "r" * 30}, None, {"Jigsaw": "w" * 30})
    assert list(by_quantity(found.rows)) == ["content"]
    assert found.lead == "controller: Next to blank tools what the tools say adds 100 points (95 % CI 91 to 100)."


EQUAL, MANY, FEW = "rw" * 20, "r" * 38 + "ww", "r" * 2 + "w" * 38
SAME = "is not shown (+0 points, 95 % CI -7 to 7)"
BY_NONE, BY_WORDS = (
    f"That blank tools alone make a difference {SAME}",
    f"that what the tools say makes a difference {SAME}",
)
SOURCE = "The gain comes from what the tools say (+90 points, 95 % CI X); that blank tools bring any"
LEADS = [
    (MANY, FEW, FEW, f"{SOURCE} {SAME}."),
    (MANY, FEW, MANY, f"Blank tools already bring 90 points (95 % CI X); {BY_WORDS}."),
    (EQUAL, EQUAL, EQUAL, f"{BY_NONE}; {BY_WORDS}."),
    (EQUAL, EQUAL, FEW, "Blank tools alone cost 45 points (95 % CI X); what the tools say adds 45 points (95 % CI X)."),
    (FEW, MANY, MANY, f"{BY_NONE}; what the tools say costs 90 points (95 % CI X)."),
    (
        MANY,
        FEW,
        EQUAL,
        "Of the 90 points, 45 (95 % CI X) come with blank tools already; what the tools say adds 45 (95 % CI X).",
    ),
    (
        EQUAL,
        FEW,
        MANY,
        "Blank tools already bring 90 points (95 % CI X); what the tools say costs 45 points (95 % CI X).",
    ),
]


@pytest.mark.parametrize(("hybrid", "alone", "blank", "lead"), LEADS)
def test_the_lead_says_both_parts_with_their_signs(made: Any, hybrid: str, alone: str, blank: str, lead: str) -> None:
    said = made({"Jigsaw": hybrid}, {"Jigsaw": alone}, {"Jigsaw": blank}).lead
    # Every interval here is above 0, or of equal answers.
    assert re.sub(r"CI [1-9]\d* to \d+", "CI X", said) == f"controller: {lead}"


def test_nothing_is_tested_where_much_failed(made: Any) -> None:
    sides = ({"Jigsaw": "rrrf"}, {"Jigsaw": "wwrr"}, {"Jigsaw": "wrrr"})
    found, allowed = made(*sides), made(*sides, allow_failed=True)
    assert all(row.p is None and row.low is None and "--allow-failed" in row.note for row in found.rows)
    assert found.lead == ""
    assert all(row.p is not None for row in by_quantity(allowed.rows).values())


def test_the_tests_of_all_questions_are_a_family_and_those_by_task_another(made: Any) -> None:
    rows = made(
        {"Jigsaw": "rrrr", "Counting": "rw"}, {"Jigsaw": "wwru", "Counting": "ww"}, {"Jigsaw": "rwra", "Counting": "rr"}
    ).rows
    overall, by_task = ([row for row in rows if bool(row.group) is grouped] for grouped in (False, True))
    for family in (overall, by_task):
        tested = sorted((row.p, row.p_holm) for row in family if row.p is not None)
        assert tested[0][1] == pytest.approx(min(1.0, tested[0][0] * len(tested)))
