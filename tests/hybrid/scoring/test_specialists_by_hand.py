"""Sentences of a conclusion about specialists: next to a solver, and where they answer."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Metric
from hybrid.scoring.compare import compare
from hybrid.scoring.conclusion import _Conclusion, _specialists_words
from hybrid.scoring.conclusion_ranking import _where_answered
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import Result
from tests.hybrid.scoring.hand_written_pairs import ALONE, GAIN, LOSS, METRIC, OPEN, pair, row
from tests.hybrid.scoring.solvers import letters, on_mvp, run_of, solver

VALUES, OTHER_ROWS = (0.51, 0.25), {"right b": row(7.0, n=12), "value b": row(0.75, n=12)}


@pytest.mark.parametrize(
    ("facts", "named", "silent", "words"),
    [
        # The metric is named unless the sentence before names it; a count of right answers needs no metric.
        ({}, "", False, ("The specialists alone have accuracy 0.510", "")),
        ({}, "accuracy", False, ("The specialists alone score 0.510", "")),
        ({"right": (20, 10)}, "accuracy", False, ("The specialists alone get 20 of 40 right", "")),
        # The words contain the solver's own value if no later words state the size of its lead.
        ({"open": True}, "accuracy", False, ("The specialists alone score 0.510, with tools 0.250", "")),
        (
            {"right": (20, 10), "open": True},
            "",
            False,
            ("The specialists alone get 20 of 40 right, with tools 10", ""),
        ),
        (
            {"right": (20, 10), "other_rule": LOSS},
            "",
            False,
            ("The specialists alone get 20 of 40 right, with tools 10", ""),
        ),
        (
            {},
            "accuracy",
            True,
            (
                "The specialists alone answer 40 of 52 questions; on these, they score 0.510, with tools 0.250",
                ". On the other 12 questions: with tools 0.750",
            ),
        ),
        (
            {"values": (0.5, 0.5)},
            "",
            True,
            (
                "The specialists alone answer 40 of 52 questions; on these, both have accuracy 0.500",
                ". On the other 12 questions: with tools 0.750",
            ),
        ),
        (
            {"right": (20, 10)},
            "",
            True,
            (
                "The specialists alone answer 40 of 52 questions; on these, they get 20 right, with tools 10",
                ". On the other 12 questions: with tools 7 right",
            ),
        ),
        (
            {"right": (20, 20)},
            "",
            True,
            (
                "The specialists alone answer 40 of 52 questions; on these, both get 20 right",
                ". On the other 12 questions: with tools 7 right",
            ),
        ),
    ],
)
def test_specialists_are_described_next_to_a_solver(
    facts: dict[str, Any], named: str, silent: bool, words: tuple[str, str]
) -> None:
    fields = {"values": VALUES, "metrics": (METRIC, METRIC), **facts}
    difference = OPEN if fields.pop("open", False) else GAIN
    other_rows = OTHER_ROWS if silent else {}
    assert _specialists_words(pair("hybrid", difference, **fields), other_rows, "with tools", named) == words


@pytest.mark.parametrize(
    ("difference", "facts", "text"),
    [
        (GAIN, {}, "The specialists alone have accuracy 0.510: tools +20 points (95% CI 10 to 30)."),
        (
            GAIN,
            {"over_all": LOSS, "count": (9, 8)},
            (
                "The specialists alone have accuracy 0.510: tools +20 points (95% CI 10 to 30) as a mean over tasks, "
                "but -20 points (95% CI -30 to -10) over all 40 questions, 8 instead of 9 right."
            ),
        ),
        (
            OPEN,
            {"over_all": LOSS, "count": (9, 8)},
            (
                "The specialists alone have accuracy 0.510, tools 0.250: no significant difference (95% CI -10 to +30 "
                "points) as a mean over tasks, but -20 points (95% CI -30 to -10) over all 40 questions, 8 instead of "
                "9 right."
            ),
        ),
    ],
)
def test_a_lead_over_specialists_names_who_leads(difference: Result, facts: dict[str, Any], text: str) -> None:
    result = pair("tools", difference, values=VALUES, metrics=(METRIC, METRIC), **facts)
    overlap = compare([ALONE, result.b]).overlap
    found = SimpleNamespace(groups=(), contestants=(), finished_repetitions=lambda scored: (scored,), overlap=overlap)
    stub: Any = SimpleNamespace(found=found, where_answered=lambda *solvers: (result, {}))
    assert _Conclusion(stub)._next_to_specialists(ALONE, result.b, "").text == text


def coverage_notes(**answers: str) -> dict[str, str]:
    """Return what the conclusion says about each solver's coverage; every solver but `mllm` is a specialist."""
    folder = run_of(*(name for name in answers if name != "mllm"))
    solvers = [solver(name, {"Jigsaw": letters(answer)}, folder=folder) for name, answer in answers.items()]
    rows = ConclusionRows(compare(solvers), ())
    return {name: _where_answered(rows, name) for name in answers}


def test_a_value_where_specialists_answer_is_that_of_the_named_one() -> None:
    """Each specialist has a note with its value on the questions that it answers. The model alone and a specialist that
    answers all questions have no note."""
    assert coverage_notes(depth="10r6w24a", sizes="18r2w20u", mllm="28r2w10a") == {
        "depth": "depth answers 16 of 40 questions, on these with 0.625; over all, ",
        "sizes": "sizes answers 20 of 40 questions, on these with 0.900; over all, ",
        "mllm": "",
    }
    assert coverage_notes(depth="10r30w", sizes="40a") == {"depth": "", "sizes": ""}
    one, neither = "1 of 40 questions, on these with 1.000", "20 of 40 questions, on these with 0.667"
    assert coverage_notes(depth="1r39a", sizes="10r5w5n20a") == {
        "depth": f"depth answers {one}; over all, ",
        "sizes": f"sizes answers {neither}; over all, ",
    }


def test_a_value_by_another_metric_is_not_that_of_the_answered_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    headline, names = Overlap.headline, {"whole": "accuracy_macro", "part": "accuracy_macro"}

    def named(overlap: Overlap, rule: UnansweredRule) -> tuple[Metric, ...] | None:
        name, metrics = names["part" if overlap.full else "whole"], headline(overlap, rule)
        return (metrics and name and tuple(replace(metric, name=name) for metric in metrics)) or None

    monkeypatch.setattr(Overlap, "headline", named)
    words = "depth answers 16 of 40 questions, on these with 0.625; over all, "
    for of_whole, of_part in (("one", "one"), ("one", "other"), ("", "one"), ("one", "")):
        names.update(whole=of_whole, part=of_part)
        assert coverage_notes(depth="10r6w24a") == {"depth": words if of_whole == of_part else ""}


def test_repeated_specialists_answer_a_mean_over_their_repetitions() -> None:
    # The repetitions answer 20 and 15 questions, 25 in all: 15 are right whenever they are answered, 5 are right in one
    # of two repetitions, and 5 are wrong.
    repeated = {"specialist": "20r20a1f", "specialist@2": "10a5r10w15a1f"}
    assert coverage_notes(**repeated)["specialist"] == (
        "specialist answers 17.5 of 40 questions (mean of 2 repetitions), on these with 0.700; over all, "
    )
    # The second repetition answers all, so the specialist does not answer only some in every repetition.
    in_all = coverage_notes(**{"specialist": "20r20a", "specialist@2": "20r20w"})["specialist"]
    assert in_all == "specialist answers 30 of 40 questions (mean of 2 repetitions), on these with 0.500; over all, "


def test_a_repetition_that_failed_entirely_answers_no_questions() -> None:
    for words in (("20r20a", "20r20a", "40f"), ("40f", "20r20a", "20r20a")):
        of_mean = coverage_notes(**dict(zip(("specialist", "specialist@2", "specialist@3"), words, strict=True)))
        assert of_mean["specialist"].startswith("specialist answers 20 of 40 questions (mean of 2 repetitions), on ")
    assert coverage_notes(**{"specialist": "20r20a", "specialist@2": "40f"})["specialist"] == (
        "specialist answers 20 of 40 questions, on these with 1.000; over all, "
    )
    said = of_specialists(**{"specialist": "20r20a", "specialist@2": "40f", "controller": "30r10w"})
    assert said.startswith("The specialists alone answer 20 of 40 questions; on these, both get 20 right: ")


def test_specialists_do_not_answer_all_questions_by_rounding() -> None:
    repeated = {f"specialist@{n}": "40r" for n in range(2, 31)}
    words = coverage_notes(specialist="39r1a", **repeated)["specialist"]
    assert words.startswith("specialist answers 39.97 of 40 questions (mean of 30 repetitions), on these with 1.000; ")


@pytest.mark.parametrize(
    "words",
    [
        # No question is complete with all its rotations, so a value where the specialist answers would be of another
        # metric.
        ("rrra" * 20,),
        # Five questions are complete, but the specialist also answers 60 rotations of other questions.
        ("rrra" * 20 + "rrrr" * 5,),
        ("rrra" * 20 + "rrrr" * 10, "arrr" * 25 + "rrrr" * 5),
    ],
)
def test_a_value_of_groups_of_questions_is_not_that_of_each_answered_question(words: tuple[str, ...]) -> None:
    names = ["specialist", "specialist@2"][: len(words)]
    solvers = [
        replace(on_mvp(name, word, rotations=True), folder=run_of(*names))
        for name, word in zip(names, words, strict=True)
    ]
    assert _where_answered(ConclusionRows(compare(solvers), ()), "specialist") == ""
    plain = replace(on_mvp("specialist", "rrraw" * 20), folder=run_of("specialist"))
    words_of_plain = _where_answered(ConclusionRows(compare([plain]), ()), "specialist")
    assert words_of_plain == "specialist answers 80 of 100 questions, on these with 0.750; over all, "


def of_specialists(**answers: str) -> str:
    """Return the sentence on the specialists next to the controller."""
    solvers = [
        solver(name, {"Jigsaw": letters(word)}, folder=None if name.startswith("controller") else run_of(*answers))
        for name, word in answers.items()
    ]
    comparison = compare(solvers)
    about = _Conclusion(ConclusionRows(comparison))
    return about._next_to_specialists(comparison.named("specialist"), comparison.named("controller"), "accuracy").text


def test_where_specialists_answer_failures_are_counted_among_these() -> None:
    # In all, 5 of 1,000 questions failed.
    said = of_specialists(specialist="100r200w100r595a5f", controller="300r100w300r295w5f")
    assert said.startswith("The specialists alone are not compared where they answer: 5 of 405 questions failed, ")
    # Specialists that answer all questions are compared on all.
    said = of_specialists(specialist="200r195w5f", controller="300r95w5f")
    assert said.startswith("The specialists alone are not compared: 5 of 400 questions failed, ")


def test_a_value_of_repeated_specialists_includes_what_they_leave_unanswered() -> None:
    answers = {"specialist": "19r21a", "specialist@2": "19a1r20a", "controller": "20r10w10r"}
    assert of_specialists(**answers).startswith(
        "The specialists alone answer 20 of 40 questions in at least one repetition; on these, unanswered repetitions "
        "included, they score 0.750, controller 1.000: "
    )
    same = {"specialist": "20r20a", "specialist@2": "20r20a", "controller": "20r20w"}
    assert "repetition; on these, " in (said := of_specialists(**same))
    assert "included" not in said
    # The controller leaves questions unanswered, in its only run or in one repetition; the specialists do not.
    left = of_specialists(**{**same, "controller": "10r10a20w"})
    assert "in at least one repetition; on these, they score 1.000, controller 0.750: " in left
    once = of_specialists(**{"specialist": "20r20a", "controller": "20r20w", "controller@2": "10r10a20w"})
    assert once.startswith("The specialists alone answer 20 of 40 questions; on these, they score 1.000, ")


def test_answers_of_specialists_without_right_and_wrong_are_answers() -> None:
    said = of_specialists(specialist="10r5w5n20a", controller="5r10w5n20r")
    assert said.startswith(
        "The specialists alone answer 20 of 40 questions; on these, they score 0.667, controller 0.3"
    )


def test_specialists_that_answer_no_whole_group_are_compared_on_all() -> None:
    words = {"specialist": "rrra" * 20, "controller": "rrrw" * 10 + "rurr" * 10}
    solvers = [
        replace(on_mvp(name, word, rotations=True), folder=run_of(*words) if name == "specialist" else None)
        for name, word in words.items()
    ]
    comparison = compare(solvers)
    about = _Conclusion(ConclusionRows(comparison))
    said = about._next_to_specialists(comparison.named("specialist"), comparison.named("controller"), "").text
    assert said.startswith(
        "The specialists alone answer 60 of 80 questions; over all, they have circular.single 0.000, controller 0.000. "
    )


def test_specialists_of_which_each_repetition_answers_a_part_say_how_many_they_answer() -> None:
    """Every question is answered in one repetition, so no question is only one of the others."""
    said = of_specialists(**{"specialist": "20r20a", "specialist@2": "20r20w", "controller": "25r15w"})
    assert said.startswith(
        "The specialists alone answer 30 of 40 questions (mean of 2 repetitions); over all, they score 0.625, "
    )
    # A repetition that failed entirely is in no mean.
    failed = {"specialist": "20r20a", "specialist@2": "20r20w", "specialist@3": "40f", "controller": "25r15w"}
    assert of_specialists(**failed).startswith("The specialists alone answer 30 of 40 questions (mean of 2 repetitions")
    silent = of_specialists(**{"specialist": "40a", "specialist@2": "40a", "controller": "25r15w"})
    assert silent == "The specialists alone answer none of these questions."


def test_a_single_other_question_is_named_without_its_number() -> None:
    said = of_specialists(specialist="20r19w1a", controller="20r19w1r")
    assert said.endswith(". On the other question: controller 1 right.")
    assert of_specialists(specialist="20r18w2a", controller="20r18w2r").endswith(
        ". On the other 2 questions: controller 2 right."
    )
