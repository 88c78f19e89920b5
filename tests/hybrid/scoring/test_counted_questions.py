"""Counts in one sentence are of the same questions, even if a metric counts only some (MVP-Bench's mAcc)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from hybrid.core.types import Kind, Outcome, Question, Reply
from hybrid.scoring.compare import compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.headline import headline_tables
from hybrid.scoring.reports import compare_paths

PAIR = ("mllm", "controller")


def yes_no_and_single_questions(synthetic_runs: Any) -> tuple[list[Question], list[Question]]:
    """Return 80 yes/no questions of MVP-Bench, which mAcc counts, and 80 single questions, which it does not count."""
    yes_no = list(synthetic_runs.QUESTIONS_OF["mvp_bench"](20))
    groups = {"level": "low", "image": "both", "pair": "0", "question": "x"}
    asked = {"task": "single", "kind": Kind.CHOICE, "choices": ("one", "other"), "target": "A", "groups": groups}
    return yes_no, [replace(question, id=f"1000{question.id}", **asked) for question in yes_no]


def test_unanswered_questions_are_counted_where_the_metric_counts(synthetic_runs: Any, tmp_path: Path) -> None:
    """MVP-Bench's mAcc counts yes/no questions: every sentence counts unanswered questions only among these."""
    yes_no, single = yes_no_and_single_questions(synthetic_runs)

    def answer(question: Question) -> Reply:
        return Reply(f"Answer: {question.target}")

    def half(question: Question) -> Reply:
        return answer(question) if question.task == "yes_no" and int(question.groups["pair"]) < 10 else Reply("Hm.")

    def silent(question: Question) -> Reply:
        return half(question) if question.task == "yes_no" else Reply("", Outcome.ABSTAINED)

    solvers = {"controller": answer, "mllm": half, "specialist": silent}
    run = synthetic_runs.write_run(tmp_path / "run", "mvp_bench", [*yes_no, *single], solvers)
    comparison = compare(compare_paths([run.path]).solvers)
    text = {sentence.id.partition(".")[0]: sentence.text for sentence in conclusion(comparison)}
    assert "as mllm leaves 40 unanswered, controller 0" in text["gain"]
    assert "unanswered questions count as wrong: mllm 40 of 80" in text["limits"]
    counts = {row.quantity: (row.value, row.n) for row in ConclusionRows(comparison).between("answered", PAIR)}
    assert counts["unanswered a"] == (40, 80)
    assert headline_tables(comparison)[0].notes[-1] == "mAcc counts 80 of 160 questions; answered counts all."
    # Only questions that the metric does not count are left unanswered: the difference has no parts.
    only = {"controller": answer, "mllm": lambda question: answer(question) if question in yes_no else Reply("Hm.")}
    run = synthetic_runs.write_run(tmp_path / "only", "mvp_bench", [*yes_no, *single], only)
    comparison = compare(compare_paths([run.path]).solvers)
    assert not ConclusionRows(comparison).between("answered", PAIR)
    assert "unanswered" not in conclusion(comparison)[-1].text


def test_specialists_are_counted_in_questions_of_the_metric(synthetic_runs: Any, tmp_path: Path) -> None:
    """MVP-Bench's mAcc counts pairs, of yes/no questions only; counts of one sentence are of the same questions."""
    yes_no, single = yes_no_and_single_questions(synthetic_runs)

    def answer(question: Question) -> Reply:
        return Reply(f"Answer: {question.target}")

    def some(question: Question) -> Reply:
        pair = int(question.groups["pair"])
        if question.task == "yes_no" and pair >= 15:
            return Reply("", Outcome.ABSTAINED)
        is_wrong = question.task == "yes_no" and pair < 3 and question.groups["image"] == "manipulated"
        return Reply("Answer: yes") if is_wrong else answer(question)

    run = synthetic_runs.write_run(
        tmp_path / "run", "mvp_bench", [*yes_no, *single], {"controller": answer, "mllm": some, "specialist": some}
    )
    text = {
        sentence.id.partition(".")[0]: sentence.text
        for sentence in conclusion(compare(compare_paths([run.path]).solvers))
    }
    assert text["specialists"].startswith(
        "The specialists alone answer 60 of 80 questions; on these, they score 0.800, with tools 1.000 over 15 groups "
        "of questions: "
    )
    assert "On the other 20 questions: with tools 1.000 over 5 groups of questions" in text["specialists"]
    assert "on the 15 groups of questions that both answered" in text["gain"]
