"""MM-SAP's numbers: the paper's totals from its own columns, verdicts, rates, spread."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from statistics import stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.benchmarks.base import ScoreOptions
from hybrid.benchmarks.mm_sap import BENCHMARK
from hybrid.benchmarks.mm_sap.metrics import official_place, read_answer, values_at_chance, values_of
from hybrid.benchmarks.mm_sap.sample import REFUSAL
from hybrid.scoring.published import published
from hybrid.types import Exchange, Kind, Metric, Outcome, Prompt, Question, Reply, Score

ROWS = published("mm_sap")
SIZES = BENCHMARK.card.tasks
CHOICES = ("a cat", "a dog", REFUSAL, "a cow", "a hen")
SHORTER = tuple(choice for choice in CHOICES if choice != REFUSAL)


def columns(table: str) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for row in ROWS:
        if row.source == table:
            found.setdefault(row.who, {})[row.metric] = row.value
    return found


def recomputed(row: dict[str, float]) -> tuple[float, float, float]:
    kk = {name: row[f"score_kk.{name}"] for name in ("BasicVisQA", "KnowVisQA")}
    ku = {name: row[f"score_ku.{name}"] for name in ("KnowVisQA", "BeyondVisQA")}
    return totals(SIZES, kk, ku)


def totals(sizes: Mapping[str, int], kk: Mapping[str, float], ku: Mapping[str, float]) -> tuple[float, float, float]:
    """Total kk, ku and sa from the columns of a table, weighted by the sizes of the sets."""
    count = sum(sizes.values())
    total_kk = sum(sizes[name] * value for name, value in kk.items()) / count
    total_ku = sum(sizes[name] * value for name, value in ku.items()) / count
    return total_kk, total_ku, total_kk + total_ku


def agrees(row: dict[str, float]) -> bool:
    printed = [row[f"score_{key}.total"] for key in ("kk", "ku", "sa")]
    return all(abs(ours - theirs) <= 0.0101 for ours, theirs in zip(recomputed(row), printed, strict=True))


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
    found = [Exchange(Prompt(("What?",), Kind.CHOICE, CHOICES), Reply(first, outcome))]
    if second is not None:
        found.append(Exchange(Prompt(("What?",), Kind.CHOICE, SHORTER), Reply(second)))
    return tuple(found)


def scored(question: Question, first: str, second: str | None = None) -> Score:
    return BENCHMARK.score(question, exchanges(first, second), ScoreOptions())


def named(scores: Sequence[Score]) -> dict[str, Metric]:
    return {metric.name: metric for metric in BENCHMARK.summarise(scores)}


def test_totals_of_table_1_follow_from_its_columns_but_for_two_rows() -> None:
    rows = columns("Table 1")
    assert len(rows) == 14
    assert {who for who, row in rows.items() if not agrees(row)} == {"Qwen-VL-Plus", "Gemini 1.0 Pro Vision"}
    assert [round(value, 2) for value in recomputed(rows["Qwen-VL-Plus"])] == [46.35, 22.96, 69.3]
    assert [round(value, 2) for value in recomputed(rows["Gemini 1.0 Pro Vision"])] == [43.39, 18.69, 62.08]
    assert rows["instructblip-vicuna-7b"] == rows["InfMLLM-7b"]


def test_totals_of_table_3_follow_from_its_columns_and_of_table_7_but_for_one_row() -> None:
    assert len(columns("Table 3")) == 6
    assert all(agrees(row) for row in columns("Table 3").values())
    assert {who for who, row in columns("Table 7").items() if not agrees(row)} == {"ShareGPT4V-7b(PPL)"}


def test_accuracy_times_rate_is_kk_but_for_two_cells() -> None:
    scores, rates = columns("Table 1"), columns("Table 2")
    apart = set()
    for who, row in rates.items():
        for name in ("BasicVisQA", "KnowVisQA"):
            kk = row[f"answer_rate.{name}"] * row[f"answer_accuracy.{name}"] / 100
            if abs(kk - scores[who][f"score_kk.{name}"]) > 0.03:
                apart.add((who, name, round(kk, 2)))
        assert 100 - row["answer_rate.BeyondVisQA"] == pytest.approx(scores[who]["score_ku.BeyondVisQA"], abs=0.011)
    assert apart == {("ShareGPT4V-13b", "BasicVisQA", 65.51), ("Gemini 1.0 Pro Vision", "KnowVisQA", 70.77)}


def test_the_unknown_knowns_rate_fits_with_the_refusals_as_denominator() -> None:
    table, scores = columns("Table 4"), columns("Table 1")
    ours = {
        who: row["refusals.KnowVisQA"] * (1 - row["unknown_knowns_rate"] / 100) / 350 * 100
        for who, row in table.items()
    }
    for who in ("InfMLLM-7b", "GPT-4V"):
        assert ours[who] == pytest.approx(scores[who]["score_ku.KnowVisQA"], abs=0.13)
    assert ours["Yi-VL-6b"] == pytest.approx(scores["Yi-VL-6B"]["score_ku.KnowVisQA"], abs=0.13)
    assert scores["Qwen-VL-Max"]["score_ku.KnowVisQA"] > table["Qwen-VL-Max"]["refusals.KnowVisQA"] / 3.5


@pytest.mark.parametrize(
    ("task", "first", "second", "kk", "ku", "knew"),
    [
        ("BasicVisQA", "A", None, 1, 0, 0),
        ("BasicVisQA", "B", None, 0, 0, 0),
        ("BasicVisQA", "C", "B", 0, 0, 0),
        ("KnowVisQA", "A", None, 1, 0, 0),
        ("KnowVisQA", "C", "A", 0, 0, 1),
        ("KnowVisQA", "C", "B", 0, 1, 0),
        ("KnowVisQA", "C", "who knows", 0, 1, 0),
        ("KnowVisQA", "C", "", 0, 1, 0),
        ("BeyondVisQA", "C", "A", 0, 1, 0),
        ("BeyondVisQA", "A", None, 0, 0, 0),
        ("BeyondVisQA", "no idea at all", None, 0, 0, 0),
    ],
)
def test_verdicts(task: str, first: str, second: str | None, kk: int, ku: int, knew: int) -> None:
    score = scored(question_of(1, task), first, second)
    assert (score.values["kk"], score.values["ku"], score.values["knew"]) == (kk, ku, knew)
    assert score.correct == score.values["sa"] == kk + ku
    assert score.values["answered"] + score.values["refused"] == 1


def test_the_second_pass_is_read_with_its_own_letters() -> None:
    question = question_of(1, "KnowVisQA")
    assert scored(question, "C", "C").values["ku"] == 1
    shifted = Question(
        **{
            **{name: getattr(question, name) for name in question.__slots__},
            "target": {"correct": 3, "refusal": 2},
        }
    )
    assert scored(shifted, "C", "C").values == {"kk": 0, "ku": 0, "sa": 0, "refused": 1, "answered": 0, "knew": 1}


def test_what_is_no_letter() -> None:
    score = scored(question_of(1, "BeyondVisQA"), "I'm sorry, I can't tell from this picture.")
    assert (score.outcome, score.values["answered"], score.correct) == (Outcome.UNPARSED, 1.0, 0.0)
    for task in SIZES:
        assert scored(question_of(1, task), "").correct == 0.0
    broken = BENCHMARK.score(question_of(1, "BasicVisQA"), exchanges("A", None, Outcome.NOT_RECORDED), ScoreOptions())
    assert (broken.correct, broken.outcome) == (0.0, Outcome.NOT_RECORDED)


def test_an_abstention_is_worth_a_random_choice() -> None:
    for task in SIZES:
        values = []
        correct = None if task == "BeyondVisQA" else 0
        for first, second in product(range(5), range(4)):
            values.append(values_of(task, correct, 2, first, (SHORTER[second] == CHOICES[0]) if first == 2 else None))
        expected = values_at_chance(task, 5)
        for key in expected:
            assert sum(value[key] for value in values) / len(values) == pytest.approx(expected[key])
        guess = ScoreOptions(abstain="chance")
        question = question_of(1, task)
        for text, outcome in (("", Outcome.ABSTAINED), ("", Outcome.BUDGET), ("Hm.", Outcome.ANSWERED)):
            said = exchanges(text, None, outcome)
            assert BENCHMARK.score(question, said, guess).correct == pytest.approx(expected["sa"])
            assert BENCHMARK.score(question, said, ScoreOptions()).correct == 0
        assert BENCHMARK.score_stored(question, "?", guess).correct == pytest.approx(expected["sa"])
        assert BENCHMARK.score_stored(question, "?").correct == 0


def test_scores_by_set_type_and_shuffle() -> None:
    plan = {
        "BasicVisQA": [("A", None), ("A", None), ("C", "A"), ("B", None)],
        "KnowVisQA": [("A", None), ("C", "B"), ("C", "A"), ("D", None)],
        "BeyondVisQA": [("C", "A"), ("C", "B"), ("A", None)],
    }
    scores = []
    for task, replies in plan.items():
        for number, (first, second) in enumerate(replies):
            kind = "Color" if number % 2 else "Counting"
            scores.append(scored(question_of(number, task, "s0", kind), first, second))
            scores.append(scored(question_of(number, task, "s1", kind), "A"))
    found = named(scores)
    value = {name: metric.value for name, metric in found.items()}
    assert value["score_kk.total"] == pytest.approx((2 + 1 + 4 + 4) / 22)
    assert value["score_ku.total"] == pytest.approx((1 + 2) / 22)
    assert value["score_sa.total"] == pytest.approx(14 / 22)
    assert value["score_kk.BasicVisQA"] == pytest.approx(6 / 8)
    assert value["score_ku.KnowVisQA"] == pytest.approx(1 / 8)
    assert value["score_sa.KnowVisQA"] == pytest.approx(6 / 8)
    assert value["score_ku.BeyondVisQA"] == pytest.approx(2 / 6)
    assert value["unknown_knowns_rate"] == pytest.approx(1 / 2)
    assert value["unknown_knowns_rate_eq8"] == pytest.approx(1 / 8)
    assert value["false_refusals"] == pytest.approx(1 / 8)
    assert value["missed_refusals"] == pytest.approx(4 / 6)
    assert value["answer_rate.KnowVisQA"] == pytest.approx(6 / 8)
    assert value["answer_accuracy.KnowVisQA"] == pytest.approx(5 / 6)
    assert "answer_accuracy.BeyondVisQA" not in value
    assert "score_kk.BeyondVisQA" not in value
    runs = [(3 + 1 + 2) / 11, 8 / 11]
    assert value["score_sa_by_shuffle.s0"] == pytest.approx(runs[0])
    assert value["score_sa.total"] == pytest.approx(sum(runs) / 2)
    assert value["spread_over_shuffles.sa"] == pytest.approx(stdev(runs))
    assert found["score_sa_by_type.Color"].n + found["score_sa_by_type.Counting"].n == 22
    assert {cell.cluster for cell in found["score_sa.total"].cells} == {score.unit for score in scores}


def test_failed_questions_are_missing() -> None:
    good = scored(question_of(1, "BasicVisQA"), "A")
    lost = Score("basic_0002", "BasicVisQA", 0.0, Outcome.BROKEN)
    found = named([good, lost])["score_kk.BasicVisQA"]
    assert (found.value, found.n) == (1.0, 1)
    unread = replace(lost, outcome=Outcome.UNPARSED)
    assert named([good, unread])["score_kk.BasicVisQA"].value == 0.5
    assert named([])["score_sa.total"].value is None


@settings(max_examples=40)
@given(
    st.lists(st.tuples(st.sampled_from(sorted(SIZES)), st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=30)
)
def test_the_identities_of_the_paper(answers: list[tuple[str, int, int]]) -> None:
    scores = []
    for number, (task, first, second) in enumerate(answers):
        scores.append(scored(question_of(number, task), "ABCDE"[first], "ABCD"[second] if first == 2 else None))
    value = {name: metric.value or 0.0 for name, metric in named(scores).items()}
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


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("B", 1),
        ("B.", 1),
        ("(B) a dog", 1),
        ("B: a dog", 1),
        (REFUSAL, 2),
        ("Sorry, I can’t help with it.", 2),
        ("a cow", 3),
        ("A dog is here", None),
        ("F", None),
        ("The answer is B", None),
        ("", None),
        (" ", None),
    ],
)
def test_direct_matching(text: str, place: int | None) -> None:
    assert official_place(text, CHOICES) == place


@given(st.text(max_size=60), st.sampled_from(["strict", "official"]), st.integers(2, 5))
def test_no_reply_chooses_what_was_not_offered(text: str, parse: str, count: int) -> None:
    found = read_answer(text, CHOICES[:count], parse)
    assert found.value is None or 0 <= found.value < count
    assert (found.value is None) == (found.rule == "none")
    if not text.strip():
        assert found.value is None


def test_stored_letters() -> None:
    question = question_of(1, "KnowVisQA")
    assert BENCHMARK.score_stored(question, "(A)").correct == 1.0
    assert BENCHMARK.score_stored(question, "C").values["ku"] == 0.0
    assert BENCHMARK.score_stored(question, "C").values["refused"] == 1.0
    for stored in ("", "Z", "AB"):
        assert BENCHMARK.score_stored(question, stored).outcome is Outcome.UNPARSED
