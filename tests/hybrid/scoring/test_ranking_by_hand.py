"""Sentences of a conclusion about the order of several solvers."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.compare import ComparisonOptions, SolverPair, compare
from hybrid.scoring.conclusion_ranking import _ahead, _first_of, _why_untested, ranking_sentences
from hybrid.scoring.conclusion_rows import ConclusionRows, turned
from hybrid.scoring.headline_pair import HeadlinePair
from hybrid.scoring.result import Result
from tests.hybrid.scoring.hand_written_pairs import LOSS, pair, row
from tests.hybrid.scoring.solvers import letters, run_of, solver


@pytest.mark.parametrize(
    ("values", "best", "words"),
    [
        ({"a": 0.5, "b": 0.4}, {"a"}, ""),
        ({"a": 0.5, "b": 0.6}, {"a"}, "b, 0.600"),
        # Values that are equal up to rounding share the first place.
        ({"a": 0.6, "b": 0.6 + 1e-12, "c": 0.5}, {"a"}, "a tie of a, b at 0.600"),
        ({"a": 0.6, "b": 0.6 + 1e-12, "c": 0.5}, {"b", "a"}, ""),
        ({"a": 0.6, "b": 0.6, "c": 0.5}, {"a", "b", "c"}, "a tie of a, b at 0.600"),
        # Losses are below 0.
        ({"a": -0.5, "b": -0.4, "c": None}, {"a"}, "b, -0.400"),
        ({"a": None}, {"a"}, ""),
        ({}, {"a"}, ""),
    ],
)
def test_the_first_by_another_count_is_named_if_it_differs(
    values: dict[str, float | None], best: set[str], words: str
) -> None:
    assert _first_of(values, best) == words


def ranking(**answers: str) -> dict[str, str]:
    """Return the sentences of a ranking of these solvers without tools, by id."""
    solvers = [solver(name, {"Jigsaw": letters(answer)}) for name, answer in answers.items()]
    return {each.id: each.text for each in ranking_sentences(ConclusionRows(compare(solvers)))}


@pytest.mark.parametrize(
    ("jigsaw", "ending"),
    [
        # As a mean over tasks mllm is first (0.500 + 0.900) / 2, and of all 320 questions text_only is right on 202.
        (("18r 2w", "12r 8w"), "; over all questions, it would be text_only, 0.631."),
        # The other task has as many questions.
        (("270r 30w", "180r 120w"), "0.700 over 600 questions (95% CI 0.666 to 0.732)."),
    ],
)
def test_the_first_over_all_questions_is_named_if_tasks_of_unequal_size_turn_it_around(
    jigsaw: tuple[str, str], ending: str
) -> None:
    counting = ("150r 150w", "190r 110w")
    solvers = [
        solver(name, {"Counting": letters(first), "Jigsaw": letters(second)})
        for name, first, second in zip(("mllm", "text_only"), counting, jigsaw, strict=True)
    ]
    said = {each.id: each.text for each in ranking_sentences(ConclusionRows(compare(solvers)))}["solvers.best"]
    assert "mllm has the highest accuracy (mean of 2 tasks), 0.700 over " in said
    assert said.endswith(ending)


SILENT, READABLE = "40a", "30r5w5a"


@pytest.mark.parametrize("first", [SILENT, READABLE])
def test_a_silent_repetition_leaves_the_others_in_the_ranking(first: str) -> None:
    mllm = {"mllm": first, "mllm@2": READABLE if first == SILENT else SILENT}
    of_mllm = "0.656 (mean of 2 repetitions, 0.500 to 0.812) over 40 questions (95% CI 0.594 to 0.714)"
    assert ranking(**mllm) == {"solvers.one": f"mllm has accuracy {of_mllm}."}
    assert f"mllm has the highest accuracy, {of_mllm}; with " in ranking(**mllm, other="20r20w")["solvers.best"]
    assert set(ranking(**{"mllm": SILENT, "mllm@2": SILENT})) == {"solvers.silent"}


@pytest.mark.parametrize(("first", "second"), [("1a", "1r"), ("1r", "1a")])
def test_a_value_without_interval_is_a_mean_over_repetitions_too(first: str, second: str) -> None:
    words = "accuracy_macro: mllm 0.750 (1 question; mean of 2 repetitions, 0.500 to 1.000); too few questions."
    assert ranking(**{"mllm": first, "mllm@2": second}) == {"solvers.no_interval": words}


@pytest.mark.parametrize(("name", "first"), [("zzz", "0.486 to 0.746 for mllm"), ("aaa", "0.470 to 0.758 for aaa")])
def test_of_solvers_with_the_same_value_each_has_its_own_repetitions(name: str, first: str) -> None:
    both = sorted([("mllm", "mllm (mean of 2 repetitions, 0.500 to 0.750)"), (name, name)])
    said = ranking(**dict(sorted({"mllm": "30r10w", "mllm@2": "20r20w", name: "25r15w"}.items())))["solvers.ties"]
    assert f"{both[0][1]}, {both[1][1]} share the highest accuracy, 0.625 over 40 questions (95% CI {first})" in said


def test_a_first_repetition_that_failed_entirely_leaves_the_others_in_the_ranking() -> None:
    mllm = {"mllm": "40f", "mllm@2": "20r20w", "mllm@3": "22r18w"}
    of_mllm = "accuracy, 0.525 (mean of 2 repetitions, 0.500 to 0.550) over 40 questions (95% CI 0.372 to 0.673)"
    assert ranking(**mllm, other="10r30w") == {
        "solvers.best": f"Of 2 solvers, none of them a model with tools, mllm has the highest {of_mllm}.",
        "ahead.some": "It is ahead of other by 28 points (14 to 44), adjusted (Holm) for 1 test.",
    }


def test_a_first_repetition_that_failed_entirely_does_not_decide_what_the_metric_is() -> None:
    """Of 320 questions text_only is right on 202 and mllm on 168, but mllm has the higher mean over tasks."""
    failed = {"Counting": letters("300f"), "Jigsaw": letters("20f")}
    mllm = {"Counting": letters("150r150w"), "Jigsaw": letters("18r2w")}
    other = {"Counting": letters("190r110w"), "Jigsaw": letters("12r8w")}
    solvers = [solver("mllm", failed), solver("mllm@2", mllm), solver("text_only", other)]
    said = {each.id: each.text for each in ranking_sentences(ConclusionRows(compare(solvers)))}["solvers.best"]
    assert "mllm has the highest accuracy (mean of 2 tasks), 0.700 over 320 questions" in said
    assert said.endswith("; over all questions, it would be text_only, 0.631.")


def test_of_solvers_with_the_same_value_the_first_that_was_tested_is_named() -> None:
    """A quarter of the questions of mllm failed, so that no difference of it is tested."""
    assert ranking(mllm="30r10f", random="40r", text_only="40w") == {
        "solvers.ties": "Of 3 solvers, none of them a model with tools, mllm, random share the highest accuracy, 1.000 "
        "over 40 questions for random (95% CI 0.912 to 1.000).",
        "ahead.some": "random is ahead of text_only by 100 points (93 to 100), adjusted (Holm) for 1 test.",
    }
    # Without a tested difference, the first one is named.
    untested = ranking(mllm="30r10f", random="36r4f", text_only="36w4f")
    assert "over 30 questions for mllm (95% CI 0.886 to 1.000)." in untested["solvers.ties"]
    assert untested["ahead.untested"].startswith("mllm is compared with none of the others: ")


def test_of_solvers_with_the_same_value_the_one_of_a_chosen_pair_is_named() -> None:
    solvers = [solver(name, {"Jigsaw": letters(word)}) for name, word in (("a", "40r"), ("b", "40r"), ("c", "40w"))]
    comparison = compare(solvers, ComparisonOptions(pairs=(SolverPair("b", "c"),)))
    said = {each.id: each.text for each in ranking_sentences(ConclusionRows(comparison))}
    assert "a, b share the highest accuracy, 1.000 over 40 questions (95% CI 0.912 to 1.000)." in said["solvers.ties"]
    assert said["ahead.some"].startswith("b is ahead of c by 100 points")


def ranked_specialist(word: str, other: str) -> str:
    """Return the first sentence on a specialist with these answers and a model alone."""
    answers = {"mllm": other, "specialist": word}
    solvers = [
        solver(name, {"Jigsaw": letters(answer)}, folder=run_of("specialist") if name == "specialist" else None)
        for name, answer in answers.items()
    ]
    return next(ranking_sentences(ConclusionRows(compare(solvers)))).text


def test_a_best_specialist_has_its_value_where_it_answers() -> None:
    best, tied = ranked_specialist("30r10a", "20r20w"), ranked_specialist("30r10a", "35r5w")
    where_answered = "); specialist answers 30 of 40 questions, on these with 1.000"
    assert "specialist has the highest accuracy, 0.875 over 40 questions (95% CI 0." in best
    assert f"{where_answered}." in best
    assert "mllm, specialist share the highest accuracy, 0.875 over 40 questions (95% CI 0." in tied
    assert f"{where_answered}; with unanswered " in tied
    assert "answers" not in ranked_specialist("40r", "20r20w")
    assert "answers" not in ranked_specialist("10r30a", "40r")


A_B, A_C = row(0.2, (0.1, 0.3), a="b", b="best"), row(0.4, (0.3, 0.5), a="c", b="best")


def lead_over(name: str, **changes: Any) -> Result:
    """Return a difference between the best solver, as `a`, and another one that is 30 points behind it."""
    return replace(row(-0.3, (-0.4, -0.2), a="best", b=name), **changes)


@pytest.mark.parametrize(
    ("differences", "no_claim", "case", "words"),
    [
        # Largest lead first, in either order of the pair; differences between other solvers are ignored.
        (
            [A_B, A_C, lead_over("d"), row(0.2, (0.1, 0.3), a="c", b="b")],
            (),
            "some",
            (
                "It is ahead of c by 40 points (30 to 50), d by 30 points (20 to 40), b by 20 points (10 to 30), "
                "adjusted (Holm) for 4 tests."
            ),
        ),
        # These leads are significant only before adjustment, or not at all.
        (
            [replace(A_B, p_holm=0.06), row(0.1, (0.0, 0.2), a="c", b="best")],
            (),
            "none",
            "Adjusted (Holm) for 2 tests, no difference to the others is significant.",
        ),
        ([replace(A_B, p_holm=0.06), A_C], (), "some", "It is ahead of c by 40 points (30 to 50), adjusted (Holm) for"),
        # The solver that is best on its own questions may be behind on the questions that both solvers have.
        (
            [replace(A_B, value=-0.2, low=-0.3, high=-0.1)],
            (),
            "depends",
            (
                "Adjusted (Holm) for 1 test, it is significantly ahead of none of the others; on the questions that "
                "both have, it is behind b by 20 points (10 to 30)."
            ),
        ),
        (
            [replace(A_B, value=-0.2, low=-0.3, high=-0.1), A_C, lead_over("d")],
            ("d",),
            "some",
            (
                "It is ahead of c by 40 points (30 to 50); no claim for its difference to d (+30 points, 20 to 40, "
                "with another result over all questions than over tasks: -20 points, -30 to -10 over all questions); "
                "on the questions that both have, it is behind b by 20 points (10 to 30), adjusted (Holm) for 3 tests."
            ),
        ),
        (
            [lead_over("d")],
            ("d",),
            "depends",
            (
                "Adjusted (Holm) for 1 test, it is significantly ahead of none of the others; no claim for its "
                "difference to d (+30 points, 20 to 40, with another result over all questions than over tasks: -20 "
                "points, -30 to -10 over all questions)."
            ),
        ),
        # Pairs without an interval, and pairs of two other solvers, do not count.
        (
            [row(0.2, a="b", b="best", note="of few"), row(0.2, (0.1, 0.3), a="c", b="b")],
            (),
            "untested",
            "It is compared with none of the others: of few.",
        ),
        ([], (), "untested", "no pair of it was chosen, or they share too few questions."),
    ],
)
def test_the_best_solver_is_compared_with_each_other_one(
    differences: list[Result], no_claim: tuple[str, ...], case: str, words: str
) -> None:
    by_pair = {frozenset((each.a, each.b)): each for each in differences}

    def pair_of(a: Any, b: Any) -> HeadlinePair:
        found = by_pair.get(frozenset((a.solver, b.solver)))
        over_all = LOSS if a.solver in no_claim else None
        rows = () if found is None else (turned(found, (a.solver, b.solver)),)
        return HeadlinePair(a, b, rows, n=40, over_all=over_all)

    pairs = [*(SolverPair(each.a, each.b) for each in differences), SolverPair("apart", "best")]
    found = SimpleNamespace(pairs=pairs, named=lambda name: solver(name, {"Jigsaw": "r"}))
    stub: Any = SimpleNamespace(found=found, pair=pair_of)
    sentence = _ahead(stub, "best")
    assert sentence.id == f"ahead.{case}"
    assert words in sentence.text


def test_one_of_several_best_solvers_is_named_with_its_differences() -> None:
    def tied(*differences: Result) -> str:
        pairs = [SolverPair(each.a, each.b) for each in differences]
        found = SimpleNamespace(pairs=pairs, named=lambda name: solver(name, {"Jigsaw": "r"}))
        by_name = {each.a: each for each in differences}
        stub: Any = SimpleNamespace(found=found, pair=lambda a, b: HeadlinePair(a, b, (by_name[a.solver],), n=40))
        return _ahead(stub, "best", tied=True).text

    assert tied(A_B).startswith("best is ahead of b by 20 points")
    assert tied(replace(A_B, low=None, high=None, p_holm=None, note="of few")).startswith("best is compared with none")
    assert "no difference of best to the others is significant" in tied(replace(A_B, p_holm=0.06))
    assert ", best is significantly ahead of none" in tied(replace(A_B, value=-0.2, low=-0.3, high=-0.1))


def test_the_best_solver_is_untested_for_the_reason_of_its_own_pairs() -> None:
    def noted(a: str, b: str, note: str) -> HeadlinePair:
        return pair(b, row(0.2, a=a, b=b, note=note))

    other, plain, own, later = (
        noted("b", "c", "of others"),
        noted("a", "b", ""),
        noted("c", "a", "its own"),
        noted("a", "d", "a later one"),
    )
    assert _why_untested([pair("b"), other, plain, own, later], "a") == "its own"
    assert _why_untested([other, own], "c") == "of others"
    nothing = "no pair of it was chosen, or they share too few questions"
    assert _why_untested([other, plain, pair("a")], "a") == _why_untested([], "a") == nothing


@pytest.mark.parametrize(
    ("second", "apart", "others"),
    [
        (
            "Counting",
            "; not comparable, because it shares no question with them: far.",
            "those that share its questions",
        ),
        ("Jigsaw", "", "the others"),
    ],
)
def test_solvers_of_other_questions_are_not_ranked_against_each_other(second: str, apart: str, others: str) -> None:
    answers = {"best": ("Jigsaw", "15r 5w"), "near": ("Jigsaw", "14r 6w"), "far": (second, "13r 7w")}
    solvers = [solver(name, {task: letters(answer)}) for name, (task, answer) in answers.items()]
    first, ahead = ranking_sentences(ConclusionRows(compare(solvers)))
    assert "best has the highest accuracy" in first.text
    assert ("not comparable" in first.text) == bool(apart)
    assert first.text.endswith(apart)
    assert f"no difference to {others} is significant" in ahead.text


def test_the_best_of_several_is_named_beside_those_without_its_questions() -> None:
    answers = {"first": ("Jigsaw", "15r 5w"), "tied": ("Jigsaw", "15r 5w"), "far": ("Counting", "8r 12w")}
    solvers = [solver(name, {task: letters(answer)}) for name, (task, answer) in answers.items()]
    sentence, _ = ranking_sentences(ConclusionRows(compare(solvers)))
    assert sentence.text.endswith("; not comparable, because first shares no question with them: far.")
