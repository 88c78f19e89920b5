"""The sentences of a conclusion follow the numbers: a gain, none to be seen, a loss, the control, what is missing."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.base import Abstain, accuracy
from hybrid.scoring.conclusion import Answers, Sides, conclusion, overview
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored
from hybrid.stats import contrast
from hybrid.types import Outcome, Score

TOOL, NONE = "blink Jigsaw", "blink Spatial_Relation"
NAMES = {"tools": "controller", "blank": "controller [blank]", "alone": "mllm", "specialist": "specialist"}


def scored(marks: str, task: str = "Jigsaw", benchmark: str = "blink") -> Scored:
    """A solver by a sign a question: + right, - wrong, ? no answer (a guess of two is worth a half), x failed."""
    counted: dict[Abstain, Counted] = {}
    for rule, guess in (("wrong", 0.0), ("chance", 0.5)):
        worth = {"+": 1.0, "-": 0.0, "?": guess, "x": 0.0}
        scores = tuple(
            Score(
                id=f"{task}_{place}",
                task=task,
                correct=worth[mark],
                outcome={"?": Outcome.ABSTAINED, "x": Outcome.OUTAGE}.get(mark, Outcome.ANSWERED),
                answer=None if mark in "?x" else "A",
            )
            for place, mark in enumerate(marks)
        )
        counted[rule] = Counted(scores, ())  # type: ignore[index]  # the literals of the rules
    return Scored(benchmark, "any", counted, "chance", {}, Data(benchmark, "val", {}, {}))


def answers(with_tool: str, without: str = "") -> Answers:
    return Answers.of([scored(with_tool), scored(without, "Spatial_Relation")])


def right(of: int, n: int) -> str:
    """So many right of n, the wrong ones spread over them."""
    return "".join("+" if place * of % n < of else "-" for place in range(n))


def said(tools: str, blank: str, alone: str, specialist: str) -> tuple[str, ...]:
    sides = Sides(answers(tools), answers(blank), answers(alone), answers(specialist))
    return conclusion(sides, [TOOL], [NONE])


def test_a_gain_that_blank_tools_do_not_have_comes_from_the_findings() -> None:
    gain, control, specialist = said(right(83, 100), right(51, 100), right(52, 100), right(85, 100))
    assert re.fullmatch(
        r"With tools the model answers 83 of 100 right where it alone answers 52: "
        r"a gain of 31 points \(95 % interval \d+ to \d+\)\.",
        gain,
    )
    assert control == "With blank tools it answers 51: the gain comes from what the tools say."
    assert specialist.startswith("The specialists alone answer 85: no difference that 100 questions can show (")


def test_a_gain_that_blank_tools_have_too_is_not_the_findings() -> None:
    gain, control, _ = said(right(83, 100), right(82, 100), right(52, 100), right(85, 100))
    assert "a gain of 31 points" in gain
    assert control == "With blank tools it answers 82: it is not shown that the gain comes from what the tools say."


def test_a_loss_is_called_one() -> None:
    loss, control, specialist = said(right(40, 100), right(70, 100), right(72, 100), right(90, 100))
    low, high = map(int, re.findall(r"a loss of 32 points \(95 % interval (\d+) to (\d+)\)", loss)[0])
    assert low < 32 < high
    assert "what the tools say brings a loss of 30 points" in control
    assert "with tools the model is behind by 50 points" in specialist


@pytest.mark.parametrize("marks", ["+-" * 20, "+" * 40, "-" * 40])
def test_equal_answers_are_no_difference(marks: str) -> None:
    for sentence in said(marks, marks, marks, marks):
        assert "no difference that 40 questions can show" in sentence


def test_ahead_of_the_specialists() -> None:
    *_, specialist = said("+" * 40, "-" * 40, "-" * 40, right(20, 40))
    assert "with tools the model is ahead by 50 points" in specialist


def test_one_question_tells_nothing() -> None:
    assert "too few questions to tell a difference" in said("+", "-", "-", "-")[0]


def test_specialists_that_abstain_are_not_ahead() -> None:
    *_, sentence = said(right(20, 40), right(20, 40), right(20, 40), "?" * 40)
    assert sentence == "The specialists alone give no answer to these."


def test_a_side_that_answers_nothing_is_compared_with_nothing() -> None:
    assert "nothing to compare, as one of the two answers nothing" in said("+" * 40, "?" * 40, "?" * 40, "+" * 40)[0]


def test_a_gain_under_one_rule_alone_is_none() -> None:
    # Counted as wrong the silent model loses by 40 points; as a guess it is level with the one that answers half.
    gain, *_ = said(right(20, 40), "?" * 39 + "+", "?" * 39 + "+", "+" * 40)
    assert "1: no difference that 40 questions can show" in gain
    assert gain.endswith("points; no answer counts as a guess).")


def test_where_no_tool_fits() -> None:
    four = [answers("", right(k, 20)) for k in (8, 9, 8)]
    sides = Sides(*four, specialist=answers("", "?" * 20))
    (sentence,) = conclusion(sides, [TOOL], [NONE])
    assert sentence.startswith("Where no tool fits it answers 8 of 20 with tools offered and 8 alone: no difference")
    assert sentence.endswith("; the specialists give no answer there.")


def test_nothing_answered_is_nothing_concluded() -> None:
    assert said("", "", "", "") == ("No question has been answered in all four ways: there is nothing to conclude.",)


def test_failed_questions_stop_the_conclusion_or_are_left_out() -> None:
    sides = Sides(*(answers(marks) for marks in ("x" + "+" * 39, "-" * 40, "-" * 40, "+" * 40)))
    assert conclusion(sides, [TOOL], [NONE]) == ("1 of 40 questions failed: nothing is concluded.",)
    told, gain, *_ = conclusion(sides, [TOOL], [NONE], allow_failed=True)
    assert told == "1 of 40 questions failed and are left out."
    assert "39 of 39 right" in gain


def test_questions_that_one_side_lacks_are_left_out() -> None:
    assert "5 of 5 right where it alone answers 0" in said("+" * 9, "-" * 5, "-" * 9, "+" * 9)[0]


signs = st.lists(st.sampled_from([a + b for a in "+-?" for b in "+-?"]), min_size=2, max_size=60)


@given(signs)
def test_no_claim_where_the_paired_interval_holds_zero(pairs: list[str]) -> None:
    tools, alone = ("".join(pair[side] for pair in pairs) for side in (0, 1))
    sentence, *_ = said(tools, alone, alone, tools)
    for rule in ("wrong", "chance"):
        of = [accuracy("", scored(marks).counted[rule].scores) for marks in (alone, tools)]  # type: ignore[index]
        found = contrast(*of).interval
        if found is None or found.low <= 0 <= found.high:
            assert "a gain" not in sentence
            assert "a loss" not in sentence


def test_benchmarks_with_the_same_ids_are_not_mixed() -> None:
    both = Answers.of([scored("++"), scored("--", "Jigsaw", "hvsbench")])
    assert sorted(both.plain) == ["blink/Jigsaw_0", "blink/Jigsaw_1", "hvsbench/Jigsaw_0", "hvsbench/Jigsaw_1"]
    assert {score.unit for score in both.plain.values()} == set(both.plain)


def test_a_score_without_right_and_wrong_is_no_part() -> None:
    path = scored("+")
    without = {rule: Counted(tuple(replace(s, correct=None) for s in c.scores), ()) for rule, c in path.counted.items()}
    assert not Answers.of([replace(path, counted=without)]).plain


def test_the_table_has_a_row_a_task_and_one_together() -> None:
    def of(jigsaw: str, depth: str, relation: str) -> Answers:
        return Answers.of([scored(jigsaw), scored(depth, "Relative_Depth"), scored(relation, "Spatial_Relation")])

    sides = Sides(of("++", "+-", "--"), of("--", "--", "--"), of("-+", "--", "+-"), of("++", "?+", "??"))
    table = overview(sides, NAMES, {TOOL: "jigsaw", NONE: "", "blink Relative_Depth": "depth"})
    assert table.names == ("task", "tool", "controller", "controller [blank]", "mllm", "specialist")
    assert [row[:2] for row in table.rows] == [
        (TOOL, "jigsaw"),
        ("blink Relative_Depth", "depth"),
        ("together", ""),
        (NONE, "-"),
    ]
    assert table.rows[2][2:] == (
        "3/4 [0.30, 0.95]",
        "0/4 [0.00, 0.49]",
        "1/4 [0.05, 0.70]",
        "3/4, 1 none [0.30, 0.95]",
    )
    assert table.rows[3][5] == "2 none"
