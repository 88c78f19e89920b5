"""Differences of hand-written solvers: pairs, counts, tests, and refused comparisons."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from hybrid.core.errors import UsageError
from hybrid.core.types import StoredImage
from hybrid.scoring.compare import Comparison, ComparisonOptions, SolverPair, chosen_pairs, compare, unique
from hybrid.scoring.pairing import Data
from hybrid.scoring.result import UNTESTED, Result
from hybrid.scoring.score import Scored
from hybrid.scoring.sections import questions
from hybrid.scoring.sections.differences import SECTION
from tests.hybrid.scoring.solvers import GENERATED, VAL, question, solver
from tests.tables import cases

OTHER = Data("blink", "val", {"kind": "hub", "id": "X/Y", "sha256": "b" * 64}, {})


class Paired(NamedTuple):
    """The rows of one pair by one metric, over all questions or within one group."""

    family: str
    # The row of the difference.
    main: Result
    values: tuple[float | None, float | None]
    # How many questions of the pair changed in each way; empty for other metrics than the headline.
    counts: dict[str, float | None]


COUNTS = ("failed", "both answered", "helped", "harmed", "none a", "none b")


def all_paired(comparison: Comparison) -> list[Paired]:
    """Return every paired difference, in the order of the rows."""
    parts: dict[tuple[str, ...], dict[str, Result]] = {}
    for row in SECTION.rows(comparison):
        parts.setdefault((row.a, row.b, row.metric, row.group), {})[row.quantity] = row
    results = []
    for rows in parts.values():
        main = rows["difference"]
        counts = {"n": rows["helped"].n, **{name: rows[name].value for name in COUNTS}} if "helped" in rows else {}
        family = "tasks" if main.group else "headline" if counts else "metrics"
        results.append(Paired(family, main, (rows["value a"].value, rows["value b"].value), counts))
    return results


def in_family(comparison: Comparison, name: str) -> list[Paired]:
    return [item for item in all_paired(comparison) if item.family == name]


def shared(comparison: Comparison) -> dict[str, float | None]:
    """Return how many questions the pair shares; there is one pair."""
    return {row.quantity: row.value for row in questions.SECTION.rows(comparison)}


def only(rows: Sequence[Paired]) -> Paired:
    (row,) = rows
    return row


# Counts.

FIRST = {"Jigsaw": "wwrarrw", "Relative_Depth": "rwu"}
SECOND = {"Jigsaw": "rrwrbrw", "Relative_Depth": "rru"}


def test_above_one_in_a_hundred_failed_nothing_is_tested() -> None:
    pairs = [("r" * 100 + "w", "f" + "r" * 99 + "r"), ("r" * 98 + "w", "f" + "r" * 98)]
    for pair, withheld, options in (
        (pairs[0], False, ComparisonOptions()),
        (pairs[1], True, ComparisonOptions()),
        (pairs[1], False, ComparisonOptions(allow_failed=True)),
    ):
        item, two = (solver(name, {"Jigsaw": text}) for name, text in zip(("one", "two"), pair, strict=True))
        for row in (paired.main for paired in all_paired(compare([item, two], options))):
            assert row.value is not None
            assert [end is None for end in (row.low, row.high, row.p, row.p_holm)] == [withheld] * 4
            assert (row.note == UNTESTED["failed"]) == withheld


def test_a_server_that_was_down_is_no_result() -> None:
    comparison = compare(
        [solver("down", {"Jigsaw": "f" * 20}), solver("up", {"Jigsaw": "r" * 20})], ComparisonOptions(allow_failed=True)
    )
    assert all(row.main.p is None for row in all_paired(comparison))
    assert {(row.counts["helped"], row.counts["n"]) for row in all_paired(comparison) if row.counts} <= {(0, 0)}


# Which comparisons are allowed and which are refused.


def test_two_benchmarks_are_refused() -> None:
    mm_sap = replace(VAL, benchmark="mm_sap")
    with pytest.raises(UsageError, match=r"two benchmarks cannot be compared:\n  one: blink val.*\n  two: mm_sap val"):
        compare([solver("one", FIRST), replace(solver("two", FIRST), benchmark="mm_sap", data=mm_sap)])


def with_images(scored: Scored, names: str) -> Scored:
    images = (StoredImage(names.encode().hex().zfill(64), 4, 4, "image/png"),)
    return replace(scored, questions={name: replace(q, images=images) for name, q in scored.questions.items()})  # type: ignore[arg-type]


def test_other_questions_under_the_same_ids_are_refused() -> None:
    real, generated = solver("one", FIRST), with_images(solver("two", SECOND, GENERATED), "drawn")
    with pytest.raises(UsageError, match="different questions under the same ids") as refused:
        compare([real, generated])
    text = str(refused.value)
    assert "one: blink val, folder, sha256 aaaaaaaaaaaa\n" in text
    assert "two: blink val, sample, seed 0, generator 7" in text
    assert "10 of the 10 ids that both have differ; Jigsaw_1 differs in images" in text


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"target": "(B)"}, "target"),
        ({"text": "What else?"}, "text"),
        ({"choices": ("x", "z")}, "choices"),
        ({"choices": ("x", "y", "z")}, "number of choices"),
        ({"images": (StoredImage("0" * 64, 4, 4, "image/png"),)}, "images"),
    ],
)
def test_one_question_that_differs_is_enough(changes: dict[str, Any], part: str) -> None:
    item, two = solver("one", FIRST), solver("two", SECOND, OTHER)
    odd = {**two.questions, "Jigsaw_3": question("Jigsaw_3", "Jigsaw", **changes)}
    with pytest.raises(UsageError, match=f"1 of the 10 ids that both have differ; Jigsaw_3 differs in {part}"):
        compare([item, replace(two, questions=odd)])


def test_predictions_pair_by_what_both_sides_know() -> None:
    unknown = Data("blink", "val", {}, {})
    bare = solver("saved", SECOND, unknown)
    bare = replace(
        bare, questions={n: replace(q, images=(), text="", choices=("", "")) for n, q in bare.questions.items()}
    )  # type: ignore[arg-type]
    assert shared(compare([solver("one", FIRST), bare]))["shared"] == 10
    other = {n: replace(q, target="(B)") for n, q in bare.questions.items()}  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="saved: blink val, predictions without their questions"):
        compare([solver("one", FIRST), replace(bare, questions=other)])
    # Simulate a harness that keeps only a part of a question's text.
    parts = {n: replace(q, text="Which of them?") for n, q in solver("one", FIRST).questions.items()}  # type: ignore[arg-type]
    by_question = {n: replace(q, text=" which\nof") for n, q in bare.questions.items()}  # type: ignore[arg-type]
    values = [replace(solver("one", FIRST), questions=parts), replace(bare, questions=by_question)]
    assert shared(compare(values))["shared"] == 10
    assert shared(compare(values[::-1]))["shared"] == 10
    # For two sets of predictions of unknown origin, too, the questions decide whether they can be compared.
    with pytest.raises(UsageError, match="differs in target"):
        compare([bare, replace(bare, solver="another", questions=other)])
    # Targets may agree by chance, so generated questions match predictions only if the images are equal.
    with pytest.raises(UsageError, match="images, which are unknown on one side"):
        compare([solver("one", FIRST, GENERATED), bare])


# Selection of pairs and metrics.

NAMES = ("mllm", "specialist", "arbiter", "openai:gpt-4o")


def test_a_baseline_meets_every_other() -> None:
    assert chosen_pairs(NAMES, "arbiter", ()) == (
        SolverPair("arbiter", "mllm"),
        SolverPair("arbiter", "specialist"),
        SolverPair("arbiter", "openai:gpt-4o"),
    )


def test_pairs_are_taken_as_given() -> None:
    words = ("specialist:mllm", "openai:gpt-4o:mllm")
    assert chosen_pairs(NAMES, None, words) == (SolverPair("specialist", "mllm"), SolverPair("openai:gpt-4o", "mllm"))
    assert chosen_pairs(NAMES, None, ()) is None


@pytest.mark.parametrize(*cases(__file__, "test_a_wrong_choice_is_refused"))
def test_a_wrong_choice_is_refused(baseline: str | None, words: tuple[str, ...], message: str) -> None:
    with pytest.raises(UsageError) as refused:
        chosen_pairs(NAMES, baseline, words)
    assert str(refused.value) == message


def test_only_chosen_pairs_are_tested_and_counted_in_their_family() -> None:
    solvers = [solver(name, {"Jigsaw": word}) for name, word in (("a", "wwrr"), ("b", "rrrr"), ("c", "wrwr"))]
    comparison = compare(solvers, ComparisonOptions(pairs=(SolverPair("b", "a"),)))
    row = only(in_family(comparison, "headline")).main
    assert (row.a, row.b, row.value) == ("b", "a", -0.5)
    assert row.p_holm == row.p
    with pytest.raises(UsageError, match="unknown solver 'd'; available: a, b, c"):
        compare(solvers, ComparisonOptions(pairs=(SolverPair("a", "d"),)))


def test_two_solvers_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="solvers have the same name,"):
        compare([solver("one", FIRST), solver("one", SECOND)])
    assert [item.solver for item in unique([solver("one", FIRST)] * 2, ["a", "b"])] == ["one (a)", "one (b)"]


def test_a_significant_difference_that_hangs_on_the_rule_is_not_established() -> None:
    answers = {"none": "r" * 50 + "w" * 50 + "a" * 100, "bad": "r" * 50 + "w" * 150, "good": "r" * 180 + "w" * 20}
    comparison = compare([solver(name, {"Jigsaw": value}) for name, value in answers.items()])
    lead = SECTION.lead(comparison, list(SECTION.rows(comparison)))
    assert lead == (
        "3 pairs were tested by accuracy_macro, adjusted (Holm) within the family of each claim at 0.05. Established: "
        "good over bad by 0.650 [0.581, 0.716]; good over none by 0.400 [0.334, 0.465]. Significant, but no claim: "
        "none over bad by 0.250 [0.215, 0.285], depending on how unanswered questions count."
    )
