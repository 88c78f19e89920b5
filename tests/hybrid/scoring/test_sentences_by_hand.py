"""Sentences of a conclusion about hand-written pairs: of several solvers, next to specialists, and of a ranking."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Cell, Metric
from hybrid.scoring.compare import ComparisonOptions, SolverPair, compare
from hybrid.scoring.conclusion import NO_BLANK, _command, _Conclusion, _measure, _of_gains, _several, _specialists_words
from hybrid.scoring.conclusion_cases import say
from hybrid.scoring.conclusion_ranking import _ahead, _first_of, _where_answered, _why_untested, ranking_sentences
from hybrid.scoring.conclusion_rows import AnswerSplit, ConclusionRows, HeadlinePair, turned
from hybrid.scoring.groups import AGAIN
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, UNTESTED, Result
from tests.hybrid.scoring.solvers import letters, on_mvp, run_of, solver

Ends = tuple[float, float] | None
ALONE, METRIC = solver("mllm", {"Jigsaw": "r"}), Metric("accuracy", 0.5, 1, "ratio", (Cell("", "q", 1.0, 1.0),))


def row(value: float | None, ends: Ends = None, p: float | None = 0.01, **fields: Any) -> Result:
    low, high = ends or (None, None)
    tested = p if ends else None
    about: dict[str, Any] = {"section": "differences", "quantity": "difference", "unit": FRACTION, **fields}
    return Result(value=value, low=low, high=high, p=tested, p_holm=tested, **about)


def pair(name: str, difference: Result | None = None, n: int = 40, waiting: int = 0, **facts: Any) -> HeadlinePair:
    """Return the pair of the model alone and a solver of this name, with its difference if it has one."""
    rows = () if difference is None else (difference,)
    return HeadlinePair(ALONE, solver(name, {"Jigsaw": "r"}, open=waiting), rows, n=n, **facts)


GAIN, LOSS, OPEN = row(0.2, (0.1, 0.3)), row(-0.2, (-0.3, -0.1)), row(0.1, (-0.1, 0.3))
CLAIMS = {
    "gain": pair("gain", GAIN),
    "loss": pair("loss", LOSS),
    "open": pair("open", OPEN),
    # An interval that ends at 0 shows no difference, nor does one that excludes 0 only before adjustment.
    "above": pair("above", row(0.1, (0.0, 0.2))),
    "below": pair("below", row(-0.1, (-0.2, 0.0))),
    "adjusted": pair("adjusted", row(0.2, (0.1, 0.3), 0.06)),
    "rule": pair("rule", GAIN, other_rule=row(-0.1, (-0.2, 0.0))),
    "uneven": pair("uneven", OPEN, over_all=LOSS, split=AnswerSplit(LOSS, OPEN, LOSS, (1, 0))),
    "rule first": pair("rule first", GAIN, other_rule=OPEN, over_all=LOSS),
    "answering": pair("answering", GAIN, split=AnswerSplit(GAIN, OPEN, None, (20, 0))),
    "few": pair("few", row(0.2), metrics=(METRIC, METRIC)),
    "failed": pair("failed", row(0.2).noted(UNTESTED["failed"]), metrics=(METRIC, METRIC)),
    "silent": pair("silent", row(0.2).noted(UNTESTED["unanswered"])),
    "waiting": pair("waiting", waiting=3),
    "apart": pair("apart"),
    "unchosen": pair("unchosen", is_chosen=False),
}


@pytest.mark.parametrize(
    ("names", "words", "tested"),
    [
        (["gain"], "for gain (+20 points, 10 to 30)", 1),
        (
            ["open", "loss", "gain"],
            (
                "for gain (+20 points, 10 to 30); against loss (-20 points, -30 to -10); no significant difference "
                "for open"
            ),
            3,
        ),
        (["above", "below", "adjusted"], "no significant difference for above, below, adjusted", 3),
        (
            ["rule", "open"],
            (
                "no significant difference for open; no claim for rule (+20 points, 10 to 30, depending on how "
                "unanswered questions count: -10 points, -20 to 0 if they count as wrong)"
            ),
            2,
        ),
        (
            ["uneven", "rule first", "answering"],
            (
                "no claim for uneven (+10 points, -10 to +30, with another result over all questions than over tasks:"
                " -20 points, -30 to -10 over all questions), rule first (+20 points, 10 to 30, depending on how "
                "unanswered questions count: +10 points, -10 to +30 if they count as wrong), answering (+20 points, "
                "10 to 30, from answering more or fewer questions)"
            ),
            3,
        ),
        (
            ["few", "failed", "silent", "gain"],
            (
                "for gain (+20 points, 10 to 30); not tested few (no interval), failed (more than 1 % of the "
                "questions failed), silent (at least one of the two answers nothing)"
            ),
            1,
        ),
        (
            ["waiting", "apart", "unchosen"],
            (
                "not tested waiting (questions are not finished), apart (no question in common), unchosen (--pairs or "
                "--baseline leaves the pair out)"
            ),
            0,
        ),
    ],
)
def test_differences_of_several_solvers_are_grouped_by_claim(names: list[str], words: str, tested: int) -> None:
    assert _several([CLAIMS[name] for name in names], ("for", "against")) == (words, tested)


@pytest.mark.parametrize(
    ("pairs", "opening"),
    [
        ([pair("a", GAIN, 40), pair("b", OPEN, 40)], "over 40 questions and adjusted (Holm) for 2 tests: a gain for a"),
        (
            [pair("a", OPEN, 60), pair("b", LOSS, 40)],
            "over 40 to 60 questions and adjusted (Holm) for 2 tests: a loss for b",
        ),
        (
            [pair("a", OPEN, 60), pair("b", OPEN, 9), pair("c", LOSS, 50)],
            "over 9 to 60 questions and adjusted (Holm) for 3 tests: a loss for c",
        ),
        # A pair without a question in common has no number of questions.
        ([pair("a", GAIN, 40), pair("b", n=0)], "over 40 questions and adjusted (Holm) for 1 test: a gain for a"),
        ([pair("b", n=0)], "not tested b (no question in common"),
    ],
)
def test_gains_of_several_solvers_have_the_numbers_of_their_questions(pairs: Any, opening: str) -> None:
    sentence = _of_gains(pairs, "; NOTE")
    comma, colon = ("", ": ") if opening.startswith("not") else (",", " ")
    assert sentence.text.startswith(f"Compared with its model alone{comma}{colon}{opening}")
    assert sentence.text.endswith("; NOTE.")
    assert sentence.id == ("gain.several_untested" if colon == ": " else "gain.several")


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
    ("rows", "case", "words"),
    [
        ([row(0.2, (0.1, 0.3))], "more", "does better with the same tools: 20 points (95% CI 10 to 30)."),
        ([row(-0.2, (-0.3, -0.1))], "less", "does worse with the same tools: 20 points (95% CI 10 to 30)."),
        # The interval excludes 0 only before adjustment.
        ([row(-0.2, (-0.3, -0.1), 0.06)], "open", "makes no significant difference (-20 points, 95% CI -30 to -10)."),
        ([row(0.1, (-0.1, 0.3))], "open", "makes no significant difference (+10 points, 95% CI -10 to +30)."),
        ([row(0.2)], "untested", "is not tested."),
        ([], "untested", "is not tested."),
    ],
)
def test_the_effect_of_the_trained_form_is_stated(rows: list[Result], case: str, words: str) -> None:
    """Only the effect of the trained form counts, not rows of a task, of other pairs or of another effect, even with
    intervals."""
    of_pair = [replace(each, quantity="as trained", a="tools", b="trained") for each in rows]
    other_pairs = (("tools", "trained", "Jigsaw"), ("tools", "blank", ""), ("blank", "trained", ""))
    others = [row(0.5, (0.4, 0.6), quantity="as trained", a=a, b=b, group=group) for a, b, group in other_pairs]
    others.append(row(0.5, (0.4, 0.6), quantity="another", a="tools", b="trained"))
    group: Any = SimpleNamespace(hybrid=solver("tools", {"Jigsaw": "r"}), as_trained=solver("trained", {"Jigsaw": "r"}))
    by_section = {"effects": [*others, *of_pair, *others]}
    stub: Any = SimpleNamespace(
        found=SimpleNamespace(groups=(group,)),
        of=by_section.__getitem__,
        tested_pair=lambda a, b: pair("trained", next(iter(rows), None)),
    )
    (sentence,) = _Conclusion(stub)._as_trained(group)
    assert sentence.id == f"trained.{case}"
    assert sentence.text.endswith(words)


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


@pytest.mark.parametrize(("count", "words"), [(1, ""), (2, ", mean of 2 repetitions"), (3, ", mean of 3 repetitions")])
def test_the_mean_of_a_solver_asked_several_times_is_named(count: int, words: str) -> None:
    stub: Any = SimpleNamespace(found=SimpleNamespace(groups=(), finished_repetitions=lambda scored: (scored,) * count))
    assert _Conclusion(stub)._again(ALONE) == words


@pytest.mark.parametrize(
    ("difference", "case", "words"),
    [
        (GAIN, "content.alone", "tool output adds 20 points (95% CI 10 to 30)."),
        (LOSS, "content.alone", "tool output costs 20 points (95% CI 10 to 30)."),
        (OPEN, "content.alone", "tool output has no significant effect (+10 points, 95% CI -10 to +30)."),
        (row(0.2), "content.few", "With blank tools: too few questions to show a difference."),
    ],
)
def test_a_tested_effect_of_tool_output_has_a_sign(
    difference: Result, case: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.scoring.conclusion.none_said", lambda found, group: False)
    result = pair("tools", difference)
    stub: Any = SimpleNamespace(found=SimpleNamespace(groups=()), part=lambda *about: result)
    stub.tested_pair = lambda *pair: result
    group: Any = SimpleNamespace(alone=None, blank=ALONE, hybrid=result.b)
    sentence = _Conclusion(stub)._parts(group, ALONE)
    assert sentence.id == case
    assert sentence.text.endswith(words)


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


@pytest.mark.parametrize("path", [None, "a/run"])
def test_the_command_for_blank_tools_repeats_the_run(path: str | None) -> None:
    folder: Any = path and SimpleNamespace(path=Path(path))
    group: Any = SimpleNamespace(hybrid=replace(ALONE, folder=folder))
    name = path or "RUN"
    command = f"hybrid run --config {name} --solver mllm --tool-output blank --out {name}-blank"
    assert _command(group) == command


def test_only_a_real_command_goes_with_a_sentence() -> None:
    assert say(NO_BLANK, command="hybrid run --config a").command == "hybrid run --config a"
    without = say(NO_BLANK, command=AGAIN)
    assert (without.command, without.text.endswith(f": {AGAIN}")) == ("", True)


def test_solvers_without_a_common_question_have_no_metric_to_name() -> None:
    assert _measure(pair("apart")) == ""
    assert _measure(pair("gain", GAIN, metrics=(METRIC, METRIC))) == "accuracy"


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
