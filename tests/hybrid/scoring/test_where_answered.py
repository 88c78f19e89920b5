"""The difference to a specialist on the questions that it answers, and the parts of a gain on the questions that all
its solvers answered."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.types import Attempt, Exchange, Kind, Outcome, Prompt, Question, Reply, Usage
from hybrid.scoring.compare import Comparison, ComparisonOptions, SolverPair, compare
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.headline_pair import HeadlinePair
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.sections.gain import CONTENT, GAIN, PRESENCE
from tests.hybrid.scoring.solvers import folder_of, question, solver

Answers = Mapping[str, Mapping[str, str]]


@pytest.fixture
def compared(synthetic_runs: Any, tmp_path: Path) -> Any:
    """Return the comparison of a run of these letters and, if `blank` is given, of a run with blank tools."""

    def of(answers: Answers, blank: Answers | None = None, rule: Any = "wrong", **options: Any) -> Comparison:
        paths = [synthetic_runs.from_letters(tmp_path / "run", answers, **options).path]
        if blank:
            paths.append(synthetic_runs.from_letters(tmp_path / "blank", blank, tool_output="blank").path)
        solvers = [scored.under(rule) for scored in compare_paths(paths).solvers]
        return compare(solvers, ComparisonOptions(allow_failed=True))

    return of


def jigsaw(**letters: str) -> dict[str, dict[str, str]]:
    return {name: {"Jigsaw": word} for name, word in letters.items()}


def where_answered(comparison: Comparison) -> tuple[HeadlinePair, HeadlinePair, dict[str, float | None]]:
    """Return the pair over all questions, the pair over those that the specialist answers, and the values of the other
    rows."""
    rows = ConclusionRows(comparison)
    specialist, other = comparison.named("specialist"), comparison.named("controller")
    part, silent = rows.where_answered(specialist, other)
    return rows.pair(specialist, other), part, {quantity: row.value for quantity, row in silent.items()}


def test_a_specialist_is_judged_on_what_it_answers(compared: Any) -> None:
    letters = jigsaw(
        specialist="r" * 20 + "w" * 4 + "a" * 16,
        controller="r" * 9 + "w" * 15 + "r" * 12 + "w" * 4,
        mllm="r" * 2 + "w" * 38,
    )
    full, part, silent = where_answered(compared(letters))
    assert (full.n, full.right, full.none, full.claim) == (40, (20, 21), (16, 0), "rule")
    assert (part.n, part.right, part.count, part.none, part.claim) == (24, (20, 9), (20, 9), (0, 0), "less")
    assert part.rows[0].value == pytest.approx(-11 / 24)
    assert part.values == pytest.approx((20 / 24, 9 / 24))
    assert part.metrics is not None
    assert [metric.value for metric in part.metrics] == pytest.approx([20 / 24, 9 / 24])
    assert (part.split, part.other_rule, part.over_all) == (None, None, None)
    assert silent == pytest.approx({"value b": 12 / 16, "right a": 0, "right b": 12})


def test_the_part_of_another_pair_is_not_taken(compared: Any) -> None:
    letters = jigsaw(specialist="r" * 24 + "a" * 16, controller="w" * 20 + "r" * 20, mllm="r" * 30 + "w" * 10)
    pairs = (SolverPair("specialist", "controller"), SolverPair("specialist", "mllm"))
    comparison = compare(compared(letters).solvers, ComparisonOptions(pairs=pairs))
    _, part, silent = where_answered(comparison)
    assert part.rows[0].value == pytest.approx(-20 / 24)
    assert (part.count, silent["right b"]) == ((24, 4), 16)


@pytest.mark.parametrize("specialist", ["r" * 40, "a" * 40])
def test_a_specialist_that_answers_all_or_nothing_is_judged_on_all(compared: Any, specialist: str) -> None:
    full, part, silent = where_answered(compared(jigsaw(specialist=specialist, controller="w" * 40)))
    assert (part, silent) == (full, {})


def test_where_a_specialist_answers_the_other_loses_by_not_answering(compared: Any) -> None:
    letters = jigsaw(specialist="r" * 12 + "w" * 12 + "a" * 16, controller="r" * 12 + "u" * 12 + "r" * 16)
    full, part, _ = where_answered(compared(letters, rule="guess"))
    assert full.other_rule is None
    # The controller's unreadable answers are half right if they count as guesses, which is better than the specialist's
    # answers. If they count as wrong, both are equal.
    assert part.claim == "rule"
    assert part.other_rule is not None
    assert part.other_rule.value == 0
    assert part.split is not None
    assert part.split.unanswered == (0, 12)
    # 12 of 24 questions are worth a half more than the specialist's wrong answers.
    assert part.split.answering.value == pytest.approx(6 / 24)
    assert part.split.both is not None
    assert part.split.both.n == 12
    assert (part.right, part.count) == (None, (12, 12))


def test_where_a_specialist_answers_tasks_of_other_sizes_may_turn_the_difference(compared: Any) -> None:
    answers = {
        "specialist": {"Jigsaw": "w" * 40 + "a" * 10, "Counting": "r" * 6 + "a" * 4},
        "controller": {"Jigsaw": "r" * 12 + "w" * 38, "Counting": "w" * 10},
    }
    _, part, _ = where_answered(compared(answers))
    # On the questions that it answers, the specialist is right on 6 of 46 and the controller on 12 of 46. As a mean
    # over tasks, the accuracies are 0.5 and 0.15.
    assert part.rows[0].value == pytest.approx(0.15 - 0.5)
    assert part.over_all is not None
    assert part.over_all.value == pytest.approx((12 - 6) / 46)
    assert (part.claim, part.count, part.right) == ("uneven", (6, 12), None)


def test_a_question_that_failed_is_no_answer_of_the_part(compared: Any) -> None:
    letters = jigsaw(specialist="r" * 20 + "a" * 18 + "rf", controller="w" * 38 + "fr")
    full, part, silent = where_answered(compared(letters))
    assert (full.n, part.n, part.count) == (38, 20, (20, 0))
    assert silent["value b"] == 0


def test_the_parts_of_a_gain_are_of_all_its_solvers(compared: Any) -> None:
    letters = jigsaw(controller="r" * 30 + "w" * 8 + "fw", mllm="r" * 10 + "w" * 26 + "ffww")
    blank = jigsaw(controller="r" * 15 + "w" * 24 + "f")
    comparison = compared(letters, blank)
    rows, (group,) = ConclusionRows(comparison), comparison.groups
    assert group.alone is not None
    assert group.blank is not None
    sides = {GAIN: (group.alone, group.hybrid), PRESENCE: (group.alone, group.blank)}
    sides[CONTENT] = (group.blank, group.hybrid)
    parts = {quantity: rows.part(group, *pair, quantity) for quantity, pair in sides.items()}
    # Questions that one solver failed are wrong for the others.
    values = {quantity: sum(row.value or 0.0 for row in part.rows) for quantity, part in parts.items()}
    assert values == pytest.approx({GAIN: 20 / 36, PRESENCE: 5 / 36, CONTENT: 15 / 36})
    assert [len(part.rows) for part in parts.values()] == [1, 1, 1]
    assert {part.failed for part in parts.values()} == {4}
    assert {part.asked for part in parts.values()} == {40}
    assert (parts[GAIN].n, parts[PRESENCE].n, parts[CONTENT].n) == (37, 37, 38)
    assert {(row.metric, row.group) for part in parts.values() for row in part.rows} == {("accuracy_macro", "")}
    assert {quantity: (part.a, part.b) for quantity, part in parts.items()} == sides
    assert rows.part(group, group.alone, group.hybrid, CONTENT).rows == ()
    # If the pair itself is left out, the number of questions is that of all three solvers.
    no_pair = compare(comparison.solvers, ComparisonOptions(pairs=(), allow_failed=True))
    part = ConclusionRows(no_pair).part(no_pair.groups[0], group.alone, group.hybrid, GAIN)
    assert (part.n, [row.value for row in part.rows]) == (36, pytest.approx([20 / 36]))
    assert ConclusionRows(no_pair).part(no_pair.groups[0], group.alone, group.hybrid, CONTENT).n == 0


def test_the_effect_of_output_needs_no_model_alone(compared: Any) -> None:
    comparison = compared(jigsaw(controller="r" * 30 + "w" * 9 + "f"), jigsaw(controller="r" * 15 + "w" * 25))
    (group,) = comparison.groups
    assert group.blank is not None
    part = ConclusionRows(comparison).part(group, group.blank, group.hybrid, CONTENT)
    assert (part.failed, part.asked, [row.value for row in part.rows]) == (1, 40, pytest.approx([15 / 39]))


def test_questions_with_a_call_are_counted_among_those_answered(compared: Any, synthetic_runs: Any) -> None:
    def cost(solver: str, question: Question, reply: Reply) -> Reply:
        number = int(question.id.rsplit("_", 1)[1])
        # The last reply of the controller broke off after a call.
        reply = replace(reply, outcome=Outcome.OUTAGE) if (solver, number) == ("controller", 7) else reply
        return synthetic_runs.calling(solver, question, reply) if number <= 3 or number == 7 else reply

    comparison = compared(jigsaw(controller="frwaaww", mllm="r" * 7), costing=cost)
    rows = ConclusionRows(comparison, ())
    assert rows.called(comparison.named("controller")) == (2, 5)
    assert rows.called(comparison.named("mllm")) == (0, 7)


def test_a_question_of_several_replies_has_a_call_if_one_reply_has(tmp_path: Path) -> None:
    asked = question("Jigsaw_1", "Jigsaw")
    prompt = Prompt((asked.text,), Kind.CHOICE, asked.choices, route=asked.route)
    replies = (Reply("Answer: (A)", usage=Usage(tool_calls=calls)) for calls in (0, 2))
    attempt = Attempt(asked.id, tuple(Exchange(prompt, reply) for reply in replies), 0.3, None, 5.0)
    folder = folder_of(tmp_path / "run", [asked], {"controller": [attempt]})
    controller = solver("controller", {"Jigsaw": "r"}, folder=folder)
    assert ConclusionRows(compare([controller]), ()).called(controller) == (1, 1)
