"""The sentences above the tables: what they say of the numbers is so under both rules of what no answer counts."""

from collections.abc import Mapping

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.registry import load
from hybrid.report.charts import task_bars
from hybrid.report.leads import NOT_THE_SAME, result_lead
from hybrid.scoring.compare import compare
from hybrid.scoring.compare_tables import metric_table
from hybrid.scoring.pairing import Data
from hybrid.scoring.same_questions import RULES
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.scoring.tidy import as_csv
from hybrid.types import Exchange, Kind, Outcome, Prompt, Question, Reply

VAL = Data("blink", "val", {"kind": "folder", "sha256": "a" * 64}, {})
QUESTIONS = {
    f"Jigsaw_{n}": Question(f"Jigsaw_{n}", "Jigsaw", (), "Which?", Kind.CHOICE, ("x", "y"), "(A)") for n in range(1, 11)
}
ENDS = {"-": Outcome.ABSTAINED, "x": Outcome.OUTAGE}


def solver(name: str, letters: str) -> Scored:
    """A solver by its letters, "A" right; "-" abstained, "x" failed, "." was not asked."""
    bench: Benchmark = load("hybrid.benchmarks", "blink")
    said: Mapping[str, str] = {f"Jigsaw_{n}": word for n, word in enumerate(letters, 1) if word != "."}
    counted = {}
    for rule in RULES:
        scores = [
            bench.score(
                QUESTIONS[identity],
                (Exchange(Prompt(("?",), Kind.CHOICE), Reply("", ENDS[word]) if word in ENDS else Reply(word)),),
                ScoreOptions(abstain=rule),
            )
            for identity, word in said.items()
        ]
        counted[rule] = Counted(tuple(scores), metrics_of(bench, QUESTIONS, scores))
    return Scored("blink", name, counted, "chance", QUESTIONS, VAL, recorded=name)


def test_the_highest_is_told_with_how_no_answer_counts() -> None:
    lead = result_lead(compare([solver("mllm", "AAAAAABBBB"), solver("specialist", "AAAAAAAB--")]))
    assert lead.startswith("specialist has the highest accuracy_macro, 0.800 (95 % interval [")
    assert lead.endswith(
        "over n = 10. A question without a readable answer counts as a guess would on average; the last column counts "
        "it the other way."
    )


def test_another_who_is_highest_by_the_other_rule_is_named() -> None:
    lead = result_lead(compare([solver("mllm", "AAAAAABBBB"), solver("specialist", "AAAAA----B")]))
    assert lead.startswith("specialist has the highest accuracy_macro, 0.700 ")
    assert lead.endswith("counted as wrong, as in the last column, mllm has the highest, 0.600.")
    equal = result_lead(compare([solver("mllm", "AAAAABBBBB"), solver("specialist", "AAAAA----B")]))
    assert equal.endswith("counted as wrong, as in the last column, mllm and specialist have the highest, 0.500.")


def test_solvers_of_different_questions_are_said_to_be_so() -> None:
    for letters in ("AAAAA.....", "AAAAAAAxxx"):
        assert result_lead(compare([solver("mllm", letters), solver("specialist", "A" * 10)])).endswith(NOT_THE_SAME)
    assert NOT_THE_SAME not in result_lead(compare([solver("mllm", "AAAAA.....")]))


def test_one_solver_has_a_value_and_no_rank() -> None:
    assert result_lead(compare([solver("mllm", "AAB")])).startswith("mllm has accuracy_macro, 0.667 ")


def test_nothing_is_told_where_everything_failed() -> None:
    assert result_lead(compare([solver("mllm", "xxx"), solver("specialist", "xxx")])) == ""


def test_nothing_was_measured_where_nothing_was_answered() -> None:
    found = compare([solver("specialist", "----------"), solver("mllm", "BBBBBBBBBB")])
    lead = result_lead(found)
    assert lead.startswith("specialist has the highest accuracy_macro, 0.500, over n = 10.")
    bars = task_bars(found, ())
    assert bars is not None
    assert {(row.solver, row.low is None) for row in bars.rows} == {("specialist", True), ("mllm", False)}
    rows = {row[1]: row for row in metric_table(found).rows}
    assert (rows["specialist"][4], rows["mllm"][4]) == ("-", "[0.00, 0.28]")
    numbers = [line for line in as_csv(found, ()).splitlines() if "metrics,value" in line]
    assert {(line.split(",")[5], line.split(",")[10] == "") for line in numbers} == {
        ("specialist", True),
        ("mllm", False),
    }
    assert set(found.solvers[0].as_json()["intervals"].values()) == {None}
