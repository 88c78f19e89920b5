"""MM-SAP's numbers: the paper's totals from its own columns, verdicts, rates, spread."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.mm_sap import BENCHMARK
from hybrid.benchmarks.mm_sap.sample import REFUSAL
from hybrid.core.types import Exchange, Kind, Outcome, Prompt, Question, Reply, Score
from hybrid.scoring.published import published

ROWS = published("mm_sap")
CHOICES = ("a cat", "a dog", REFUSAL, "a cow", "a hen")
SHORTER = tuple(choice for choice in CHOICES if choice != REFUSAL)

SIZES = BENCHMARK.card.tasks


def totals(sizes: Mapping[str, int], kk: Mapping[str, float], ku: Mapping[str, float]) -> tuple[float, float, float]:
    """Return the totals kk, ku and sa from the columns of a table, weighted by the sizes of the sets."""
    count = sum(sizes.values())
    total_kk = sum(sizes[name] * value for name, value in kk.items()) / count
    total_ku = sum(sizes[name] * value for name, value in ku.items()) / count
    return total_kk, total_ku, total_kk + total_ku


def columns(table: str) -> dict[str, dict[str, float]]:
    results: dict[str, dict[str, float]] = {}
    for row in ROWS:
        if row.source == table:
            results.setdefault(row.who, {})[row.metric] = row.value
    return results


def question_of(number: int, task: str, shuffle: str = "s0", kind: str = "Color") -> Question:
    correct = None if task == "BeyondVisQA" else 0
    return Question(
        f"{task}_{number}#{shuffle}",
        task,
        (),
        "What?",
        Kind.CHOICE,
        CHOICES,
        {"correct": correct, "refusal": 2},
        groups={"type": kind, "shuffle": shuffle},
        protocol={"refusal": 2, "refusal_prompt": False},
        cluster=f"{task}_{number}",
    )


def exchanges(first: str, second: str | None = None, outcome: Outcome = Outcome.ANSWERED) -> tuple[Exchange, ...]:
    values = [Exchange(Prompt(("What?",), Kind.CHOICE, CHOICES), Reply(first, outcome))]
    if second is not None:
        values.append(Exchange(Prompt(("What?",), Kind.CHOICE, SHORTER), Reply(second)))
    return tuple(values)


def scored(question: Question, first: str, second: str | None = None) -> Score:
    return BENCHMARK.score(question, exchanges(first, second), ScoreOptions())


def test_accuracy_times_rate_is_kk_but_for_two_cells() -> None:
    scores, rates = columns("Table 1"), columns("Table 2")
    seen = set()
    for who, row in rates.items():
        for name in ("BasicVisQA", "KnowVisQA"):
            kk = row[f"answer_rate.{name}"] * row[f"answer_accuracy.{name}"] / 100
            if abs(kk - scores[who][f"score_kk.{name}"]) > 0.03:
                seen.add((who, name, round(kk, 2)))
        assert 100 - row["answer_rate.BeyondVisQA"] == pytest.approx(scores[who]["score_ku.BeyondVisQA"], abs=0.011)
    assert seen == {("ShareGPT4V-13b", "BasicVisQA", 65.51), ("Gemini 1.0 Pro Vision", "KnowVisQA", 70.77)}


def test_the_unknown_knowns_rate_fits_with_the_refusals_as_denominator() -> None:
    table, scores = columns("Table 4"), columns("Table 1")
    by_value = {
        who: row["refusals.KnowVisQA"] * (1 - row["unknown_knowns_rate"] / 100) / 350 * 100
        for who, row in table.items()
    }
    for who in ("InfMLLM-7b", "GPT-4V"):
        assert by_value[who] == pytest.approx(scores[who]["score_ku.KnowVisQA"], abs=0.13)
    assert by_value["Yi-VL-6b"] == pytest.approx(scores["Yi-VL-6B"]["score_ku.KnowVisQA"], abs=0.13)
    assert scores["Qwen-VL-Max"]["score_ku.KnowVisQA"] > table["Qwen-VL-Max"]["refusals.KnowVisQA"] / 3.5


def test_what_is_no_letter() -> None:
    score = scored(question_of(1, "BeyondVisQA"), "I'm sorry, I can't tell from this picture.")
    assert (score.outcome, score.values["answered"], score.correct) == (Outcome.UNPARSED, 1.0, 0.0)
    for task in SIZES:
        assert scored(question_of(1, task), "").correct == 0.0
    broken = BENCHMARK.score(question_of(1, "BasicVisQA"), exchanges("A", None, Outcome.NOT_RECORDED), ScoreOptions())
    assert (broken.correct, broken.outcome) == (0.0, Outcome.NOT_RECORDED)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(SIZES)), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30)
)
def test_the_identities_of_the_paper(answers: list[tuple[str, int, int]]) -> None:
    scores = []
    for number, (task, first, second) in enumerate(answers):
        scores.append(scored(question_of(number, task), "ABCDE"[first], "ABCD"[second] if first == 2 else None))
    value = {metric.name: metric.value or 0.0 for metric in BENCHMARK.summarise(scores)}
    sizes = {task: sum(task == name for name, _, _ in answers) for task in SIZES}
    kk = {task: value.get(f"score_kk.{task}", 0.0) for task in SIZES if task != "BeyondVisQA"}
    ku = {task: value.get(f"score_ku.{task}", 0.0) for task in SIZES if task != "BasicVisQA"}
    assert totals(sizes, kk, ku) == pytest.approx(
        (value["score_kk.total"], value["score_ku.total"], value["score_sa.total"])
    )
    for task in ("BasicVisQA", "KnowVisQA"):
        if sizes[task]:
            assert value[f"answer_accuracy.{task}"] * value[f"answer_rate.{task}"] == pytest.approx(kk[task])
            assert value[f"answer_rate.{task}"] + value[f"refusal_rate.{task}"] == pytest.approx(1)
    if sizes["BeyondVisQA"]:
        assert value["score_ku.BeyondVisQA"] == pytest.approx(1 - value["missed_refusals"])


def test_stored_letters() -> None:
    question = question_of(1, "KnowVisQA")
    assert BENCHMARK.score_stored(question, "(A)").correct == 1.0
    assert BENCHMARK.score_stored(question, "C").values["ku"] == 0.0
    assert BENCHMARK.score_stored(question, "C").values["refused"] == 1.0
    for stored in ("", "Z", "AB"):
        assert BENCHMARK.score_stored(question, stored).outcome is Outcome.UNPARSED
