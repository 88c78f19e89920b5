"""Metrics of the recipes against formulas written anew from the authors' code: made-up answers, printed counts."""

import random
from collections import defaultdict
from collections.abc import Sequence
from statistics import mean

import pytest

from hybrid.benchmarks.base import Benchmark, ScoreOptions
from hybrid.registry import load
from hybrid.types import Exchange, Kind, Outcome, Prompt, Question, Reply, Score

CHOICES = ("one", "two", "three", "four")


def replied(benchmark: Benchmark, question: Question, text: str) -> Score:
    prompt = Prompt((question.text,), question.kind, question.choices)
    return benchmark.score(question, (Exchange(prompt, Reply(text)),), ScoreOptions())


def made(identity: str, task: str, right: bool, groups: dict[str, str] | None = None, cluster: str = "") -> Score:
    return Score(identity, task, float(right), Outcome.ANSWERED, "A", "bare", {}, groups or {}, cluster)


def metrics(name: str, scores: Sequence[Score]) -> dict[str, float]:
    return {metric.name: metric.value for metric in load("hybrid.benchmarks", name).summarise(scores)}


def test_cv_bench_is_the_mean_of_2d_and_3d_over_sources() -> None:
    rng = random.Random(0)
    sources = [("2D", "ADE20K", 40), ("2D", "COCO", 90), ("3D", "Omni3D", 70)]
    rows = [(kind, source, rng.random() < 0.6) for kind, source, count in sources for _ in range(count)]
    scores = [made(str(i), "Count", right, {"type": k, "source": s}) for i, (k, s, right) in enumerate(rows)]

    def accuracy(source: str) -> float:
        return mean(right for _, where, right in rows if where == source)

    two, three = (accuracy("ADE20K") + accuracy("COCO")) / 2, accuracy("Omni3D")
    found = metrics("cvbench", scores)
    assert next(iter(found.values())) == pytest.approx((two + three) / 2)
    assert found["accuracy.3D"] == pytest.approx(three)
    assert found["accuracy.COCO"] == pytest.approx(accuracy("COCO"))
    # The share of all questions is another number: sources are not equally large.
    assert found["accuracy"] == pytest.approx(mean(right for *_, right in rows))
    assert found["accuracy"] != pytest.approx((two + three) / 2)


def test_mmvp_counts_a_pair_when_both_are_right() -> None:
    rng = random.Random(1)
    right = [rng.random() < 0.7 for _ in range(300)]
    scores = [made(str(i + 1), "mmvp", each, cluster=f"rows{i // 2 + 1}") for i, each in enumerate(right)]

    # As scripts/gpt_grader.py counts: two rows, then a verdict.
    correct = total = in_round = 0
    for place, each in enumerate(right):
        in_round += each
        if place % 2:
            correct += in_round == 2
            total += 1
            in_round = 0
    assert total == 150
    found = metrics("mmvp", scores)
    assert found["all_right"] == pytest.approx(correct / total)
    assert found["accuracy"] == pytest.approx(mean(right))


def test_hr_bench_is_the_mean_of_the_cycles() -> None:
    rng = random.Random(2)
    scores, by_cycle, by_question = [], defaultdict(list), defaultdict(list)
    for number in range(50):
        for cycle in range(4):
            right = rng.random() < 0.5
            task = "single" if number < 25 else "cross"
            scores.append(made(f"{number}.{cycle}", task, right, {"cycle_category": str(cycle)}, f"q{number}"))
            by_cycle[cycle].append((task, right))
            by_question[number].append(right)

    # As hrbench_score: the accuracy of each cycle, then their mean, of all and of each category.
    def average(tasks: Sequence[str]) -> float:
        return mean(mean(right for task, right in rows if task in tasks) for rows in by_cycle.values())

    found = metrics("hrbench", scores)
    assert next(iter(found.values())) == pytest.approx(average(("single", "cross")))
    assert found["accuracy.single"] == pytest.approx(average(("single",)))
    assert found["accuracy.cross"] == pytest.approx(average(("cross",)))
    assert found["all_right"] == pytest.approx(mean(all(rows) for rows in by_question.values()))


def pope_scores(tp: int, fp: int, tn: int, fn: int, task: str) -> list[Score]:
    benchmark = load("hybrid.benchmarks", "pope")
    made_up = [("yes", "Yes")] * tp + [("no", "Yes")] * fp + [("no", "No")] * tn + [("yes", "No")] * fn
    return [
        replied(benchmark, Question(f"{task}{i}", task, (), "Is there a dog?", Kind.YES_NO, target=target), said)
        for i, (target, said) in enumerate(made_up)
    ]


def test_pope_gives_the_numbers_that_were_printed_for_these_counts() -> None:
    """LLaVA's issue 626 prints the counts of LLaVA-1.5 on the random list, and what evaluate.py makes of them."""
    found = metrics("pope", pope_scores(1183, 31, 1379, 317, "random"))
    assert found["accuracy.random"] == pytest.approx(0.8804123711340206)
    assert found["precision.random"] == pytest.approx(0.9744645799011532)
    assert found["recall.random"] == pytest.approx(0.7886666666666666)
    assert found["f1.random"] == pytest.approx(0.8717759764185703)
    assert found["yes_share.random"] == pytest.approx((1183 + 31) / 2910)


def test_pope_averages_its_three_lists() -> None:
    scores = [
        *pope_scores(9, 1, 9, 1, "random"),
        *pope_scores(8, 4, 6, 2, "popular"),
        *pope_scores(5, 5, 5, 5, "adversarial"),
    ]
    found = metrics("pope", scores)
    assert next(iter(found.values())) == pytest.approx((18 / 20 + 14 / 20 + 10 / 20) / 3)
    assert found["f1.popular"] == pytest.approx(2 * 8 / (12 + 10))


def test_a_reply_of_pope_that_is_neither_yes_nor_no_is_no_yes() -> None:
    benchmark = load("hybrid.benchmarks", "pope")
    question = Question("q", "random", (), "Is there a dog?", Kind.YES_NO, target="no")
    found = metrics("pope", [replied(benchmark, question, "I cannot tell.")])
    assert found["yes_share.random"] == 0.0
    assert found["accuracy.random"] == 0.0


@pytest.mark.parametrize("name", ["vstar", "sat"])
def test_accuracy_is_also_the_mean_over_tasks(name: str) -> None:
    scores = [made(str(i), "a", i < 3) for i in range(4)] + [made(str(i), "b", False) for i in range(4, 16)]
    found = metrics(name, scores)
    assert found["accuracy"] == pytest.approx(3 / 16)
    assert found["accuracy_macro"] == pytest.approx((3 / 4 + 0) / 2)


def test_sat_counts_a_question_that_is_right_whichever_option_is_first() -> None:
    scores = [made("row1", "a", True), made("row1#circ1", "a", False), made("row2", "a", True)]
    scores.append(made("row2#circ1", "a", True))
    assert metrics("sat", scores)["all_right"] == pytest.approx(1 / 2)
