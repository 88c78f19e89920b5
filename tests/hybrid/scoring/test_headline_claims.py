"""The claim of a headline pair: by its state, by the parts of a difference, and for pairs that were not tested."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.conclusion_rows import ConclusionRows, are_counts
from hybrid.scoring.headline_pair import AnswerSplit, HeadlinePair, State, hangs_on_rule, is_uneven, rule_decides, shown
from hybrid.scoring.result import UNTESTED
from hybrid.scoring.score import Scored
from tests.hybrid.scoring.pairs import NO_OPEN, pair, pair_of, row, split
from tests.hybrid.scoring.solvers import on_mvp, solver


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        *((name, name) for name in ("more", "less", "open", "few")),
        ("touching from above", "open"),
        ("touching from below", "open"),
    ],
)
def test_a_state_is_where_the_interval_lies(ends: str, state: str) -> None:
    assert pair(ends).state == state
    assert pair(ends).claim == state


@pytest.mark.parametrize(
    ("state", "shared", "answering", "claim"),
    [
        ("more", "more", "open", "more"),
        ("more", "more", "more", "more"),
        ("more", "more", "less", "more"),
        ("more", "open", "more", "answering"),
        ("less", "open", "less", "answering"),
        # Neither part is significant alone, only both together.
        ("more", "open", "open", "split"),
        ("less", "open", "open", "split"),
        # The questions that both solvers answered show the opposite, so the part from answering is not the only
        # significant one.
        ("more", "less", "more", "split"),
        ("less", "more", "less", "split"),
        ("more", "open", "less", "split"),
        ("open", "more", "less", "split"),
        ("open", "less", "more", "split"),
        ("open", "open", "more", "open"),
        ("open", "open", "open", "open"),
        ("open", "more", "open", "split"),
        ("more", None, "more", "answering"),
        ("open", None, "open", "split"),
        ("few", "more", "more", "few"),
    ],
)
def test_a_difference_is_claimed_where_the_answers_to_the_same_questions_show_it(
    state: str, shared: str | None, answering: str, claim: str
) -> None:
    assert pair(state, split(shared, answering)).claim == claim


@pytest.mark.parametrize(("state", "claim"), [("more", "others"), ("less", "others"), ("open", "split")])
def test_a_difference_on_other_questions_is_none_from_more_answers(state: str, claim: str) -> None:
    shared = "more" if state == "open" else "open"
    assert pair(state, replace(split(shared, state), more_answered=False)).claim == claim


@pytest.mark.parametrize(
    ("state", "shared", "answering", "matters"),
    [
        ("more", "more", "open", False),
        ("open", "open", "open", False),
        ("more", "more", "more", True),
        ("more", "more", "less", True),
        ("more", "open", "open", True),
        ("open", None, "open", True),
    ],
)
def test_parts_are_printed_if_they_say_something_else(
    state: Any, shared: str | None, answering: str, matters: bool
) -> None:
    assert split(shared, answering).matters(state) is matters


def test_the_rule_goes_before_the_weights_of_tasks_and_these_before_the_parts() -> None:
    parts = split("open", "more")
    assert pair("more", parts, other_rule=row("open"), over_all=row("less")).claim == "rule"
    assert pair("more", parts, over_all=row("less")).claim == "uneven"
    assert pair("few", parts, other_rule=row("open"), over_all=row("less")).claim == "few"


@pytest.mark.parametrize(
    ("metrics", "open_a", "open_b", "state"),
    [
        (None, 1, 0, "waiting"),
        (None, 0, 1, "waiting"),
        (None, 0, 0, "apart"),
        ("some", 1, 1, "apart"),
    ],
)
def test_a_pair_without_rows_waits_or_is_apart(metrics: Any, open_a: int, open_b: int, state: str) -> None:
    solvers: Any = (SimpleNamespace(open=open_a), SimpleNamespace(open=open_b))
    assert HeadlinePair(*solvers, metrics=metrics).state == state


@pytest.mark.parametrize(
    ("reason", "state"), [("failed", "failed"), ("waiting", "waiting"), ("unanswered", "silent"), ("units", "units")]
)
def test_a_pair_that_was_not_tested_says_why(reason: str, state: str) -> None:
    solvers: Any = (NO_OPEN, NO_OPEN)
    # The first row is the difference, to which the limits of other rows do not apply.
    assert HeadlinePair(*solvers, (row("few", UNTESTED[reason]), row("few"))).state == state
    assert HeadlinePair(*solvers, (row("more"), row("few", UNTESTED[reason]))).state == "more"


@pytest.mark.parametrize(
    ("state", "value", "other", "other_value", "hangs"),
    [
        ("more", 0.1, "more", 0.3, False),
        ("more", 0.1, "open", 0.1, True),
        ("open", 0.1, "more", 0.1, True),
        ("open", 0.1, "open", 0.02, False),
        ("open", 0.1, "open", -0.02, True),
        ("open", -0.1, "open", 0.02, True),
        ("open", -0.1, "open", -0.02, False),
        # A value that is 0 up to rounding has no sign.
        ("open", 0.0, "open", -0.02, False),
        ("open", 0.1, "open", -1e-12, False),
        ("open", 0.1, "open", None, False),
    ],
)
def test_what_hangs_on_the_rule_has_another_sign_or_state(
    state: str, value: float, other: str, other_value: float | None, hangs: bool
) -> None:
    solvers: Any = (NO_OPEN, NO_OPEN)
    this = HeadlinePair(*solvers, (row(state, value=value),))
    assert hangs_on_rule(this, row(other, value=other_value)) is hangs


@pytest.mark.parametrize(
    ("state", "value", "other", "other_value", "decided"),
    [
        ("more", 0.1, "less", -0.1, "direction"),
        ("less", -0.1, "more", 0.1, "direction"),
        ("more", 0.1, "open", -0.02, "both"),
        ("open", 0.02, "less", -0.1, "both"),
        ("more", 0.1, "open", 0.02, "verdict"),
        ("open", -0.02, "less", -0.1, "verdict"),
        ("open", 0.02, "open", -0.02, "sign"),
    ],
)
def test_what_the_rule_decides(state: str, value: float, other: str, other_value: float, decided: str) -> None:
    solvers: Any = (NO_OPEN, NO_OPEN)
    this = HeadlinePair(*solvers, (row(state, value=value),))
    assert rule_decides(this, row(other, value=other_value)) == decided


@pytest.mark.parametrize(
    ("state", "value", "over_all", "over_all_value", "uneven"),
    [
        ("more", 0.1, "more", 0.2, False),
        ("more", 0.1, "open", 0.05, False),
        ("more", 0.1, "open", -0.05, True),
        ("open", 0.1, "open", -0.05, True),
        ("open", 0.1, "open", 0.05, False),
        ("open", 0.1, "few", 0.05, False),
        # The effect is significant over all questions; the same difference with another interval is not.
        ("open", 0.1, "more", 0.15, True),
        ("open", 0.0, "less", -0.1, True),
        ("open", 0.1, "more", 0.1, False),
        ("few", 0.1, "more", 0.15, False),
        # The interval over all questions, -0.1 to 0.1, contains 0, and excludes the mean over tasks or not.
        ("more", 0.11, "open", 0.05, True),
        ("less", -0.11, "open", -0.05, True),
        ("less", -0.1, "open", -0.05, False),
        ("more", 0.11, "more", 0.05, False),
        ("open", 0.11, "open", 0.05, False),
    ],
)
def test_a_mean_over_tasks_is_uneven_if_all_questions_say_something_else(
    state: str, value: float, over_all: str, over_all_value: float, uneven: bool
) -> None:
    solvers: Any = (NO_OPEN, NO_OPEN)
    this = HeadlinePair(*solvers, (row(state, value=value),))
    assert is_uneven(this, row(over_all, value=over_all_value)) is uneven


def test_counts_are_right_answers_of_all_solvers() -> None:
    assert are_counts((0.5, 0.25), (20, 10), 40)
    assert not are_counts((0.5, 0.2), (20, 10), 40)
    assert not are_counts((0.4, 0.25), (20, 10), 40)
    assert not are_counts((0.5, None), (20, 10), 40)


def test_a_pair_in_both_orders_has_both_counts_and_opposite_differences() -> None:
    rows, comparison, forward = pair_of({"Jigsaw": "r" * 10 + "w" * 30}, {"Jigsaw": "w" * 4 + "r" * 31 + "w" * 5})
    back = rows.pair(comparison.named("b"), comparison.named("a"))
    assert (forward.state, forward.right, forward.n, forward.none, forward.failed, forward.asked) == (
        "more",
        (10, 31),
        40,
        (0, 0),
        0,
        40,
    )
    assert (back.state, back.right, back.n) == ("less", (31, 10), 40)
    assert forward.values == back.values[::-1] == (0.25, 0.775)
    assert [metric.value for metric in forward.metrics or ()] == [0.25, 0.775]
    assert [metric.value for metric in back.metrics or ()] == [0.775, 0.25]
    assert forward.rows[0].value == pytest.approx(0.525)
    assert back.rows[0].value == pytest.approx(-0.525)
    assert (forward.split, forward.other_rule, forward.over_all) == (None, None, None)


def test_the_rows_of_a_pair_are_those_of_the_headline_over_all_questions() -> None:
    rows, comparison, pair = pair_of({"Jigsaw": "w" * 40}, {"Jigsaw": "r" * 40})
    a, b, differences = comparison.named("a"), comparison.named("b"), rows.of("differences")
    # A task may have a row of the same metric. Without a common headline, no metric has counts.
    of_task = (replace(row, group="Jigsaw", value=0.5) for row in differences if row.metric == pair.rows[0].metric)
    assert ConclusionRows(comparison, (), (*differences, *of_task)).pair(a, b).rows == pair.rows != ()
    without_counts = [row for row in differences if row.quantity != "helped" or row.group]
    assert ConclusionRows(comparison, (), without_counts).pair(a, b).rows == ()


def test_the_rows_of_a_pair_are_not_those_of_another_pair() -> None:
    comparison = compare([solver(name, {"Jigsaw": word * 40}) for name, word in {"a": "w", "b": "r", "c": "r"}.items()])
    rows = ConclusionRows(comparison, ("differences",))
    assert {(row.a, row.b) for row in rows.between("differences", ("b", "a"))} == {("b", "a")}
    # While a section is being computed, its rows are passed on.
    part = [row for row in rows.of("differences") if row.b == "c"]
    assert ConclusionRows(comparison, ("differences",), part).of("differences") == tuple(part) != ()


def test_without_verdicts_there_is_no_number_of_right_answers() -> None:
    solvers = [solver(name, {"Jigsaw": "w" * 40}) for name in ("a", "b")]
    for sections, right in ((("differences", "helped"), (0, 0)), (("differences",), None)):
        assert ConclusionRows(compare(solvers), sections).pair(*solvers).right == right


@pytest.mark.parametrize(
    ("a", "b", "claim", "unanswered"),
    [
        ("w" * 40, "r" * 40, "more", None),
        ("w" * 20 + "a" * 20, "r" * 40, "more", (20, 0)),
        ("w" * 40, "r" * 20 + "a" * 20, "more", (0, 20)),
        ("a" * 20 + "w" * 20, "a" * 20 + "r" * 20, "more", (20, 20)),
        # If unanswered questions count as wrong, the solver with many of them is behind; if they count as a guess, it
        # is ahead.
        ("a" * 36 + "w" * 4, "w" * 24 + "r" * 16, "rule", (36, 0)),
        ("w" * 10 + "r" * 30, "a" * 10 + "r" * 30, "rule", (0, 10)),
    ],
)
def test_a_claim_knows_who_left_what_unanswered(a: str, b: str, claim: str, unanswered: tuple[int, int] | None) -> None:
    rows, comparison, forward = pair_of({"Jigsaw": a}, {"Jigsaw": b})
    back = rows.pair(comparison.named("b"), comparison.named("a"))
    assert (forward.claim, back.claim) == (claim, {"more": "less"}.get(claim, claim))
    assert forward.none == (a.count("a"), b.count("a"))
    assert (forward.split and forward.split.unanswered) == unanswered
    assert (back.split and back.split.unanswered) == (unanswered and unanswered[::-1])
    values, common = {"r": 1.0, "w": 0.0, "a": 0.5}, [(x, y) for x, y in zip(a, b, strict=True) if "a" not in x + y]
    of_all, better = (sum(values[y] - values[x] for x, y in pairs) / 40 for pairs in (zip(a, b, strict=True), common))
    assert forward.rows[0].value == pytest.approx(of_all)
    for either, sign in ((forward, 1), (back, -1)) if unanswered else ():
        assert either.split is not None
        assert either.split.better.value == pytest.approx(sign * better)
        assert either.split.answering.value == pytest.approx(sign * (of_all - better))
        assert (either.split.both and either.split.both.n) == len(common)


def test_no_gain_is_claimed_if_the_tasks_of_a_part_weigh_against_it() -> None:
    # Solver `a` answers 20 of Jigsaw's 200 questions, all wrongly, and all of Counting's, all correctly.
    a = {"Jigsaw": "w" * 20 + "a" * 180, "Counting": "r" * 200}
    either = pair_of(a, {"Jigsaw": "r" * 200, "Counting": "r" * 140 + "w" * 60})[2]
    either = replace(either, other_rule=None)
    split = either.split
    assert split is not None
    assert split.both is not None
    assert split.both.value == pytest.approx((1 - 0.3) / 2)
    assert split.better.value == pytest.approx((20 / 200 - 0.3) / 2)
    assert (either.state, shown(split.both), split.has_two_signs, either.claim) == ("more", "more", True, "split")
    assert "+35 points (95% CI 30 to 39), but -10 points (95% CI -14 to -6) of the whole, as tasks weigh " in str(
        either.fields()["split"]
    )


def test_no_gain_is_claimed_if_the_repetitions_of_a_part_weigh_against_it() -> None:
    # Solver `b` answers 240 questions in only one of five repetitions, all wrongly, and the others in every repetition.
    silent = "a" * 240 + "r" * 160
    b = "w" * 240 + "r" * 160
    either = pair_of({"Jigsaw": "r" * 240 + "r" * 64 + "w" * 96}, {"Jigsaw": b}, *[silent] * 4)[2]
    split = replace(either, other_rule=None).split
    assert split is not None
    assert split.both is not None
    assert split.both.value == pytest.approx((96 - 240) / 400)
    assert split.better.value == pytest.approx((96 - 240 / 5) / 400)
    assert (shown(split.both), split.has_two_signs) == ("less", True)
    assert ", but +12 points (95% CI 7 to 17) of the whole, as repetitions weigh differently; " in str(
        either.fields()["split"]
    )


def test_answering_is_not_the_only_part_if_better_answers_are_significant_too() -> None:
    # Solver `a` answers 6 of Counting's 100 questions. Among these, each solver has two right answers that the other
    # lacks. As a task with half of the weight they hide that `b` is better on Jigsaw; among all questions they are few.
    a = {"Jigsaw": "w" * 20 + "r" * 80, "Counting": "wwrrrr" + "a" * 94}
    result = pair_of(a, {"Jigsaw": "r" * 100, "Counting": "rrwwrr" + "r" * 94})[2]
    split = result.split
    assert split is not None
    assert split.both is not None
    assert [shown(part) for part in (split.answering, split.both, split.better)] == ["more", "open", "more"]
    assert replace(result, other_rule=None).claim == "split"
    words = (
        "on the 106 questions that both answered +10 points (95% CI -35 to +55), which makes +10 points (95% CI 5 to "
    )
    assert words in str(result.fields()["split"])


@pytest.mark.parametrize("more_answered", [True, False])
@pytest.mark.parametrize(
    ("better", "claim", "words"),
    [
        ("more", "split", ", which makes +10 points (95% CI 1 to 20) of the whole; "),
        ("less", "split", ", which makes -10 points (95% CI -20 to -1) of the whole; "),
        ("open", "", ", which makes +10 points (95% CI -10 to +10) of the whole; "),
        ("few", "", ", which makes +10 points (no interval) of the whole; "),
    ],
)
def test_only_one_part_is_named_if_the_other_is_not_significant(
    better: str, claim: str, words: str, more_answered: bool
) -> None:
    solvers: Any = (SimpleNamespace(open=0, solver="mllm"), SimpleNamespace(open=0, solver="controller"))
    of_better = row(better, value=-0.1 if better == "less" else 0.1)
    parts = AnswerSplit(row("more"), of_better, row("open", value=0.0), (3, 0), more_answered)
    result = HeadlinePair(*solvers, (row("more"),), split=parts)
    assert result.claim == (claim or ("answering" if more_answered else "others"))
    assert words in str(result.fields()["split"])


def test_a_part_that_is_small_in_the_whole_weighs_nothing_differently() -> None:
    # There is one task and no repetition. Both solvers answer 12 of the 112 questions.
    a, b = {"Jigsaw": "w" * 9 + "rrr" + "a" * 100}, {"Jigsaw": "r" * 9 + "wwr" + "r" * 100}
    result = pair_of(a, b)[2]
    assert result.split is not None
    assert result.split.both is not None
    assert [shown(part) for part in (result.split.both, result.split.better)] == ["open", "more"]
    assert (
        "; on the 12 questions that both answered +58 points (95% CI -12 to +100), which makes +6 points (95% CI 0.1 "
        "to 13) of the whole; answering at all contributes "
    ) in str(result.fields()["split"])


def test_answering_is_not_the_only_part_if_the_same_questions_show_the_opposite() -> None:
    # On Jigsaw both solvers answer all questions and are right equally often. On Counting, `b` answers all questions,
    # but `a` only ten, on which `b` is wrong.
    a = {"Jigsaw": "r" * 30 + "w" * 30 + "r" * 20 + "w" * 20, "Counting": "r" * 10 + "a" * 90}
    b = {"Jigsaw": "w" * 30 + "r" * 50 + "w" * 20, "Counting": "w" * 10 + "r" * 90}
    rows, comparison, forward = pair_of(a, b)
    for by_rule in (forward, rows.pair(comparison.named("b"), comparison.named("a"))):
        result = replace(by_rule, other_rule=None, over_all=None)
        assert result.split is not None
        assert result.split.both is not None
        states = [result.state, shown(result.split.answering), shown(result.split.both), shown(result.split.better)]
        assert states in (["more", "more", "less", "open"], ["less", "less", "more", "open"])
        assert result.claim == "split"


def test_the_weights_of_tasks_are_named_next_to_those_of_repetitions() -> None:
    # `a` answers a tenth of Jigsaw, wrongly, and all of Counting correctly; `b` leaves one question unanswered in one
    # of two repetitions.
    a = {"Jigsaw": "w" * 20 + "a" * 180, "Counting": "r" * 200}
    b = {"Jigsaw": "r" * 200, "Counting": "r" * 140 + "w" * 60}
    result = pair_of(a, b, "r" * 199 + "a")[2]
    assert result.split is not None
    assert result.split.mixed_repetitions
    assert ", as repetitions and tasks weigh differently; " in str(result.fields()["split"])


def test_the_questions_that_both_answered_confirm_nothing_if_they_were_not_tested() -> None:
    # Only 5 of 1,000 questions failed, but this is more than 1 % of the 405 that `a` answered or failed.
    a = "r" * 100 + "w" * 200 + "r" * 100 + "a" * 595 + "f" * 5
    result = pair_of({"Jigsaw": a}, {"Jigsaw": "r" * 300 + "w" * 100 + "r" * 300 + "w" * 295 + "f" * 5})[2]
    result = replace(result, other_rule=None)
    assert (result.state, result.claim) == ("more", "split")
    assert result.split is not None
    assert result.split.both is not None
    assert result.split.both.low is None
    assert (
        "; on the 400 questions that both answered +25 points (not tested: of these and the failed ones, more than 1 % "
        "failed), which makes +10 points (95% CI 7 to 13) of the whole; "
    ) in str(result.fields()["split"])
    assert result.without_claim("a") == "a (+10 points, 6 to 14, not confirmed by questions that both answered)"


def test_a_difference_on_no_question_that_both_answered_is_not_confirmed_by_any() -> None:
    a, b = "r" * 20 + "w" * 20 + "a" * 40, "a" * 40 + "r" * 22 + "w" * 18
    result = replace(pair_of({"Jigsaw": a}, {"Jigsaw": b})[2], other_rule=None)
    assert (result.state, result.claim) == ("open", "split")
    assert result.without_claim("a").endswith(", not confirmed by questions that both answered)")


def test_better_answers_are_stated_only_if_their_interval_excludes_0() -> None:
    solvers: Any = (SimpleNamespace(open=0, solver="mllm"), SimpleNamespace(open=0, solver="controller"))
    for better, words in (
        ("more", "by both; better answers contribute +10 points (95% CI 1 to 20); "),
        ("open", "both; "),
    ):
        result = HeadlinePair(*solvers, (row("more"),), split=AnswerSplit(row("more"), row(better), None, (3, 0)))
        assert words in str(result.fields()["split"])
        assert result.claim == ("split" if better == "more" else "answering")


@pytest.mark.parametrize(
    ("both", "better", "has_two_signs"),
    [
        (("more", 0.1), ("open", -0.1), True),
        (("open", 0.1), ("less", -0.1), True),
        (("open", 0.1), ("open", -0.1), False),
        (("more", 0.1), ("more", 0.1), False),
        (("more", 0.1), ("less", 0.0), False),
    ],
)
def test_a_part_has_two_signs_if_one_of_them_is_significant(
    both: tuple[str, float], better: tuple[str, float], has_two_signs: bool
) -> None:
    of_both, of_better = row(both[0], value=both[1]), row(better[0], value=better[1])
    parts = AnswerSplit(row("open"), of_better, of_both, (3, 0))
    assert parts.has_two_signs == parts.matters("more" if both[0] == "more" else "open") == has_two_signs
    assert pair("more", parts).claim == ("split" if has_two_signs or both[0] == "open" else "more")


def test_a_difference_of_0_from_answering_is_of_no_more_answers() -> None:
    # `b` answers 20 questions more, but both solvers gain the same by answering.
    a, b = "a" * 40 + "r" * 15 + "w" * 5 + "rw" * 30, "r" * 25 + "w" * 15 + "a" * 20 + "rw" * 30
    split = pair_of({"Jigsaw": a}, {"Jigsaw": b})[2].split
    assert split is not None
    assert (split.answering.value, split.more_answered) == (0, False)


def test_a_pair_that_was_not_tested_has_no_parts() -> None:
    pair = pair_of({"Jigsaw": "w" * 30 + "a" * 9 + "f"}, {"Jigsaw": "r" * 40})[2]
    assert (pair.state, pair.split, pair.failed, pair.asked, pair.n) == ("failed", None, 1, 40, 39)
    assert (pair.other_rule, pair.over_all) == (None, None)


def test_the_other_rule_is_applied_to_the_mean_over_tasks() -> None:
    small = {"Counting": "w" * 10}
    # On one of two tasks, `b` loses 3 of 60 questions. If unanswered questions count as guesses, it also gains 15 of
    # them.
    pair = pair_of({"Jigsaw": "w" * 30 + "r" * 30, **small}, {"Jigsaw": "a" * 30 + "r" * 27 + "w" * 3, **small})[2]
    assert pair.rows[0].value == pytest.approx((15 - 3) / 60 / 2)
    assert pair.other_rule is not None
    assert pair.other_rule.value == pytest.approx(-3 / 60 / 2)


def test_a_mean_over_repetitions_or_with_credit_is_no_count_of_right_answers() -> None:
    a, b = {"Jigsaw": "w" * 40}, {"Jigsaw": "r" * 40}
    assert pair_of(a, b)[2].right == (0, 40)
    assert pair_of(a, b, "r" * 40)[2].right is None
    assert pair_of(a, {"Jigsaw": "r" * 30 + "a" * 10})[2].right is None
    rows, comparison, _ = pair_of(a, b, "r" * 40)
    assert rows.pair(comparison.named("b"), comparison.named("a")).right is None


def test_solvers_of_other_questions_have_no_metric_in_common() -> None:
    pair = pair_of({"Jigsaw": "w" * 40}, {"Counting": "r" * 40})[2]
    assert (pair.state, pair.metrics, pair.rows) == ("apart", None, ())


@pytest.mark.parametrize(("small", "state"), [("w" * 10, "less"), ("r" * 10, None)])
def test_a_mean_over_tasks_is_compared_with_all_questions(small: str, state: State | None) -> None:
    a = {"Jigsaw": "w" * 60, "Counting": "r" * 10}
    pair = pair_of(a, {"Jigsaw": "r" * 20 + "w" * 40, "Counting": small})[2]
    assert pair.metrics is not None
    assert pair.metrics[0].combine == "mean_of_ratios"
    assert (pair.over_all is None) == (state is None)
    assert pair.over_all is None or pair.over_all.value == pytest.approx((20 - 10) / 70)
    assert (pair.count, pair.right) == ((10, 20 + small.count("r")), None)
    assert pair.claim == ("uneven" if state else "more")


def test_the_differences_within_tasks_are_those_that_were_tested() -> None:
    rows, comparison, _ = pair_of({"Jigsaw": "w" * 20, "Counting": "r"}, {"Jigsaw": "r" * 20, "Counting": "r"})
    a, b = comparison.named("a"), comparison.named("b")
    assert [(of_task.group, of_task.value) for of_task in rows.tasks(a, b)] == [("Jigsaw", 1.0)]
    assert [(of_task.group, of_task.value) for of_task in rows.tasks(b, a)] == [("Jigsaw", -1.0)]


@pytest.mark.parametrize(
    ("a", "b", "is_of_answers"),
    [
        ("w" * 40, "r" * 40, True),
        ("w" * 39 + "a", "r" * 40, True),
        # The difference comes from answering at all, holds by one rule only, or is on unshared questions.
        ("a" * 30 + "r" * 10, "r" * 40, False),
        ("w" * 20 + "r" * 20, "a" * 20 + "r" * 20, False),
        ("w" * 10 + "r" * 10 + "w" * 10 + "r" * 10, "r" * 20 + "a" * 20, False),
        ("a" * 20 + "w" * 20, "w" * 20 + "a" * 20, False),
    ],
)
def test_a_task_is_better_by_its_answers(a: str, b: str, is_of_answers: bool) -> None:
    rows, comparison, _ = pair_of({"Jigsaw": a, "Counting": "rw"}, {"Jigsaw": b, "Counting": "rw"})
    of_a, of_b = comparison.named("a"), comparison.named("b")
    (of_task,) = [row for row in rows.tasks(of_a, of_b) if row.group == "Jigsaw"]
    assert rows.is_of_answers(of_a, of_b, of_task) is is_of_answers


def test_a_task_of_rotations_is_better_by_the_answers_to_its_questions() -> None:
    """Single answers decide, which the task's difference counts, not whole groups of rotations: here none is right."""
    of_a, of_b = on_mvp("a", "awwr" * 2 + "wwwr" * 38, rotations=True), on_mvp("b", "wrrr" * 40, rotations=True)
    rows = ConclusionRows(compare([of_a, of_b]), ("differences", "helped", "answered"))
    (of_task,) = rows.tasks(of_a, of_b)
    assert (of_task.value, shown(of_task), of_task.group) == (0.5, "more", "single")
    metrics = rows.found.overlap(of_a, of_b).headline("wrong")
    assert metrics is not None
    assert [metric.value for metric in metrics] == [0, 0]
    assert rows.is_of_answers(of_a, of_b, of_task)


def test_a_group_of_by_is_better_by_its_answers() -> None:
    """The task has two groups: on the near questions `b` is better by its answers, on the far ones by answering at
    all."""

    def near_and_far(name: str, word: str) -> Scored:
        scored = solver(name, {"Jigsaw": word}, recorded=f"{name} recorded")
        counted = {}
        for rule, value in scored.counted.items():
            scores = [
                replace(score, groups={"distance": "near" if place < 40 else "far"})
                for place, score in enumerate(value.scores)
            ]
            counted[rule] = replace(value, scores=tuple(scores))
        return replace(scored, counted=counted)

    a, b = near_and_far("a", "w" * 40 + "a" * 30 + "r" * 10), near_and_far("b", "r" * 80)
    comparison = compare([a, b], ComparisonOptions(by="distance"))
    rows = ConclusionRows(comparison, ("differences", "helped", "answered"))
    assert {each.group: rows.is_of_answers(a, b, each) for each in rows.tasks(a, b)} == {"near": True, "far": False}
