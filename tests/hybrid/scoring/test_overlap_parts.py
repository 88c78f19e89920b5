"""The two parts of a difference: from better answers and from answering at all."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Metric
from hybrid.scoring import overlap
from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.overlap import Overlap
from tests.hybrid.scoring.overlaps import VALUES, compared, on_pictures, shared_of
from tests.hybrid.scoring.solvers import on_mvp, solver


def test_the_parts_by_answering_are_shifted_equally() -> None:
    # Counted as a guess, a missing answer is worth a half, so where `b` is wrong the rest of the metric is below 0.
    shared = shared_of(compared("a" * 10 + "r" * 10, "w" * 10 + "r" * 5 + "a" * 5), "a", "b")
    parts = shared.split_by_answering("guess")
    assert parts is not None
    (better_a, better_b), (rest_a, rest_b) = parts
    assert (better_a.value, better_b.value) == (0.5 * 15 / 20 + 5 / 20, 0.5 * 15 / 20 + 5 / 20)
    assert rest_a.value is not None
    assert rest_b.value is not None
    # `b` is wrong on ten questions that `a` leaves out, and leaves out five on which `a` is right.
    assert rest_b.value - rest_a.value == pytest.approx(-(10 + 5) * 0.5 / 20)
    assert min(cell.numerator for cell in (*rest_a.cells, *rest_b.cells)) == 0


def test_no_answer_is_worth_its_credit_where_any_solver_left_the_question() -> None:
    # Questions 5 to 11 of `a`: 5 failed; 6 was not asked; 7 is unanswered where `b` failed; 8 is right where one
    # repetition of `b` failed; 9 is unanswered where `b` is neither right nor wrong; 10 is right where one repetition
    # of `b` was not asked; 11 is unanswered.
    comparison = compared("rwaaf.arara", b="rararrffnrr", b_2="rawwrrfrn.a")
    credit = dict(zip(shared_of(comparison, "a", "b").ids, shared_of(comparison, "a", "b").credit, strict=True))
    assert {name for name, value in credit.items() if value} == {f"Jigsaw_{n}" for n in (2, 3, 4, 9, 11)}
    assert set(credit.values()) == {0, 0.5}
    a, b = compared("a", "r").solvers
    score = replace(a.scores[0], correct=None)
    neither = replace(a, counted={"guess": replace(a.counted["guess"], scores=(score,))})
    assert shared_of(compare([neither, b]), "a", "b").credit.tolist() == [0]
    wrong = compare([scored.under("wrong") for scored in comparison.solvers])
    assert not shared_of(wrong, "a", "b").credit.any()


def test_a_metric_whose_units_depend_on_the_answers_has_no_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = shared_of(compared("a" * 4 + "r" * 6, b="r" * 10, b_2="w" * 10), "a", "b")
    of_repetitions, summary = Overlap._headline_with, overlap.summary
    parts = shared.split_by_answering("guess")
    # The headline need not be the first metric.
    monkeypatch.setattr(overlap, "summary", lambda *args: tuple(reversed(summary(*args))))
    assert parts is not None
    assert shared.split_by_answering("guess") == parts

    def with_other_units(self: Overlap, *args: Any) -> Metric | None:
        metric = of_repetitions(self, *args)
        assert metric is not None
        return replace(metric, cells=tuple(cell._replace(denominator=2.0) for cell in metric.cells))

    # If one combination of repetitions has other units, there is no split; a combination without a value is left out.
    for other, has_parts in ((lambda *args: None, True), (with_other_units, False)):
        monkeypatch.setattr(
            Overlap,
            "_headline_with",
            lambda *args, other=other: (other if args[-1] == (0, 1) else of_repetitions)(*args),
        )
        assert (shared.split_by_answering("guess") is not None) == has_parts
    alone = shared_of(compared("a" * 4 + "r" * 6, "r" * 10), "a", "b")
    monkeypatch.setattr(Overlap, "_headline_with", lambda self, *args: None)
    assert alone.split_by_answering("guess") is None


def test_a_repeated_solver_has_the_mean_over_its_repetitions_in_both_parts() -> None:
    shared = shared_of(compared("r" * 10 + "w" * 10, b="r" * 20, b_2="a" * 4 + "w" * 16), "a", "b")
    metrics, parts = shared.headline("wrong"), shared.split_by_answering("wrong")
    assert metrics is not None
    assert parts is not None
    assert shared.unanswered[1].tolist() == [True] * 4 + [False] * 16
    assert [metric.value for metric in metrics] == pytest.approx([0.5, 0.5])
    # In the pair with the second repetition of `b`, the first four questions count as unanswered for both solvers.
    assert [metric.value for metric in parts[0]] == pytest.approx([(10 + 6) / 2 / 20, (20 + 0) / 2 / 20])
    assert [metric.value for metric in parts[1]] == pytest.approx([4 / 2 / 20, 0])


@pytest.mark.parametrize("seed", range(4))
def test_parts_of_repeated_solvers_are_means_over_pairs_of_repetitions(seed: int) -> None:
    rng = random.Random(seed)
    words = {"a": "", "a@2": "", "b": "", "b@2": "", "b@3": ""}
    # The last repetition was not asked the first question; other answers are missing or failed at random.
    words = {name: "".join(rng.choices("rwaf", (4, 4, 3, 1), k=40)) for name in words} | {
        "b@3": "." + "".join(rng.choices("rwa.", (4, 4, 3, 1), k=39))
    }
    if seed % 2:
        # One solver has every question, in each repetition.
        words |= {name: "".join(rng.choices("rwa", k=40)) for name in ("a", "a@2")}
    # The second question failed in all repetitions of one solver.
    words = {name: word if name[0] == "a" else f"{word[0]}f{word[2:]}" for name, word in words.items()}
    options = ComparisonOptions(allow_failed=True)
    comparison = compare([on_pictures(solver(name, {"Jigsaw": word})) for name, word in words.items()], options)
    shared, values = shared_of(comparison, "a", "b"), VALUES | {"a": 0.5}
    total, better, both = [], [], []
    for letters in zip(*words.values(), strict=True):
        of_a, of_b = ([letter for letter in replies if letter in values] for replies in (letters[:2], letters[2:]))
        if not of_a or not of_b:
            continue
        pairs = list(product(of_a, of_b))
        total.append(fmean(values[b] - values[a] for a, b in pairs))
        better.append(fmean(0.0 if "a" in pair else values[pair[1]] - values[pair[0]] for pair in pairs))
        if {*of_a} != {"a"} != {*of_b}:
            read = [[values[letter] for letter in replies if letter != "a"] for replies in (of_a, of_b)]
            both.append(fmean(read[1]) - fmean(read[0]))

    def difference(metrics: Sequence[Metric] | None) -> float:
        assert metrics is not None
        first, second = (metric.value for metric in metrics)
        assert first is not None
        assert second is not None
        assert {cell.cluster for metric in metrics for cell in metric.cells} == {f"picture {n}" for n in range(5)}
        return second - first

    parts, common = shared.split_by_answering("guess"), shared.with_answers()
    assert parts is not None
    assert difference(shared.headline("guess")) == pytest.approx(fmean(total))
    assert difference(parts[0]) == pytest.approx(fmean(better))
    assert difference(parts[1]) == pytest.approx(fmean(total) - fmean(better))
    assert difference(common.headline("guess")) == pytest.approx(fmean(both))
    assert [metric.n for metric in common.headline("guess") or ()] == [len(both)] * 2
    assert common.n == len(both) == shared.answered_by_all.sum()
    assert {*common.ids} == {*shared.ids[shared.answered_by_all | ~shared.present]}
    assert (common.lost.sum(), common.missing.sum()) == (shared.lost.sum(), shared.missing.sum())
    assert common.untested(common.headline("guess")) is None


@pytest.mark.parametrize("seed", range(3))
def test_parts_of_a_mean_over_tasks_weigh_each_task_alike(seed: int) -> None:
    rng, sizes = random.Random(seed), {"Jigsaw": 30, "Counting": 10}
    letters = {
        name: {task: "".join(rng.choices("rwa", (4, 4, 3), k=size)) for task, size in sizes.items()}
        for name in ("a", "a@2", "b")
    }
    comparison = compare([solver(name, words) for name, words in letters.items()])
    parts = shared_of(comparison, "a", "b").split_by_answering("guess")
    assert parts is not None
    better, whole = [], []
    for task in sizes:
        pairs = [pair for name in ("a", "a@2") for pair in zip(letters[name][task], letters["b"][task], strict=True)]
        whole.append(fmean(VALUES[b] - VALUES[a] for a, b in pairs))
        better.append(fmean(0.0 if "a" in (a, b) else VALUES[b] - VALUES[a] for a, b in pairs))
    differences = [(b.value or 0.0) - (a.value or 0.0) for a, b in parts]
    assert differences == pytest.approx([fmean(better), fmean(whole) - fmean(better)])


def test_units_that_one_solver_never_completes_are_of_neither() -> None:
    # In the last 10 units, `a` leaves a different rotation unanswered in each repetition.
    first = ("rrrr" * 3 + "rrrw" * 7) + "arrr" * 10
    words = {"a": first, "a@2": first.replace("arrr", "rarr"), "b": "rrrr" * 6 + "rrrw" * 4 + "rrrw" * 10}
    comparison = compare([on_mvp(name, word, rotations=True) for name, word in words.items()])
    shared = shared_of(comparison, "a", "b")
    a, b = shared.with_answers().headline("wrong") or ()
    assert (a.name, a.n, b.n, a.value, b.value) == ("circular.single", 10, 10, 0.3, 0.6)
    split = ConclusionRows(comparison).pair(*shared.solvers).split
    assert split is not None
    assert split.both is not None
    assert (split.both.value, split.both.n, split.both_in_every) == (pytest.approx(0.3), 10, True)


def test_a_repetition_that_failed_everything_leaves_the_parts_to_the_others() -> None:
    words = {"a": "r" * 20 + "w" * 20, "a@2": "f" * 40, "b": "r" * 30 + "w" * 5 + "a" * 5}
    shared = shared_of(compare([on_mvp(name, word) for name, word in words.items()]), "a", "b")
    rules: tuple[tuple[UnansweredRule, float], ...] = (("wrong", 0.0), ("guess", 0.5 * 5 / 40))
    for rule, answering in rules:
        parts = shared.split_by_answering(rule)
        assert parts is not None
        differences = [(b.value or 0.0) - (a.value or 0.0) for a, b in parts]
        assert differences == pytest.approx([10 / 40, answering])


def test_answers_without_right_and_wrong_are_answers_of_both() -> None:
    # Of the first two questions, one repetition leaves each unanswered.
    comparison = compared("aanrwa", a_2="rnnrwr", b="rnnwwr")
    common = shared_of(comparison, "a", "b").with_answers()
    assert common.ids.tolist() == [f"Jigsaw_{n}" for n in range(1, 7)]
    assert not np.any(common.unanswered)
    assert common.kept.tolist() == [True, False, False, True, True, True]
    a, b = common.headline("wrong") or ()
    assert (a.n, a.value, b.value) == (4, 0.75, 0.5)
