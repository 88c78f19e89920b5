"""The shared questions of solvers, recomputed question by question from random letters."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from hybrid.benchmarks.base import Benchmark
from hybrid.core.types import Cell, Metric, Score
from hybrid.scoring import overlap
from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.overlap import Overlap, _mean_metric
from hybrid.scoring.score import Scored
from hybrid.stats import combine, contrast
from tests.hybrid.scoring.overlaps import ANSWERS, VALUES, compared, on_pictures, shared_of
from tests.hybrid.scoring.solvers import on_mvp, share_not_wrong, solver


@pytest.mark.parametrize("seed", range(5))
def test_the_questions_of_an_overlap_are_those_that_all_have_and_none_failed(seed: int) -> None:
    rng = random.Random(seed)
    first, second, third = ("".join(rng.choices("rwaf.n", (8, 8, 4, 2, 4, 1), k=40)) for _ in range(3))
    shared = shared_of(compared(first, b=second, b_2=third), "a", "b")
    values_of, answers_of = VALUES | {"n": 0.0}, ANSWERS | {"n": "C"}
    by_solver = [[first], [second, third]]
    # The questions are in the order of the first solver, followed by those that only others have.
    numbers_by_solver = [[n for n in range(40) if word[n] != "."] for word in (first, second, third)]
    order = list(dict.fromkeys(n for numbers in numbers_by_solver for n in numbers))
    assert shared.ids.tolist() == [f"Jigsaw_{n + 1}" for n in order]
    assert [score.id for score in shared.first] == shared.ids.tolist() == shared.unit.tolist()
    for place, n in enumerate(order):
        letters = [[word[n] for word in words] for words in by_solver]
        missing = any(set(replies) == {"."} for replies in letters)
        has_failure = not missing and any(set(replies) <= {".", "f"} for replies in letters)
        assert (shared.missing[place], shared.lost[place]) == (missing, has_failure)
        assert shared.present[place] == (not missing and not has_failure)
        assert shared.kept[place] == (shared.present[place] and not any("n" in replies for replies in letters))
        if not shared.present[place]:
            assert not shared.answered_by_all[place]
            assert not any(flags[place] for flags in shared.unanswered)
            values = zip(letters, shared.correct(), shared.right, strict=True)
            assert all(
                np.isnan(correct[place]) and right[place] == 0
                for replies, correct, right in values
                if set(replies) == {"."}
            )
            continue
        counting = [[letter for letter in replies if letter in values_of] for replies in letters]
        assert [right[place] for right in shared.right] == [fmean(map(values_of.__getitem__, c)) for c in counting]
        read = [[answers_of[letter] for letter in replies if letter in answers_of] for replies in counting]
        assert [answer[place] for answer in shared.answer] == [(answers or [None])[0] for answers in read]
        assert [flags[place] for flags in shared.unanswered] == ["a" in replies for replies in counting]
        assert shared.answered_by_all[place] == all(set(replies) != {"a"} for replies in counting)
        shares = [replies.count("a") / len(replies) for replies in counting]
        assert [share[place] for share in shared.silent_share] == pytest.approx(shares)


def test_a_part_has_its_own_questions_and_knows_the_whole() -> None:
    shared = shared_of(compared("rwfr.wa", "wr.rrwf"), "a", "b")
    places = np.array([5, 1, 0])
    part = shared.at(places)
    assert part.ids.tolist() == shared.ids[places].tolist()
    assert [score.id for score in part.first] == part.ids.tolist()
    assert part.present.tolist() == shared.present[places].tolist()
    assert [right.tolist() for right in part.right] == [right[places].tolist() for right in shared.right]
    assert part.full is shared
    assert part.at(np.array([1])).full is shared


def test_failures_elsewhere_withhold_the_test_of_a_part() -> None:
    shared = shared_of(compared("r" * 20 + "f", "w" * 21, allow_failed=False), "a", "b")
    part = shared.at(np.arange(20))
    assert (shared.untested(), part.untested(), part.at(np.arange(10)).untested()) == ("failed",) * 3
    # One failed question is less than 1 % of 200, but more than 1 % of the last ten.
    rare = shared_of(compared("r" * 199 + "f", "w" * 200, allow_failed=False), "a", "b")
    assert (rare.untested(), rare.at(np.arange(190, 200)).untested(), rare.at(np.arange(10)).untested()) == (
        None,
        "failed",
        None,
    )
    assert shared_of(compared("r" * 20 + "f", "w" * 21, allow_failed=True), "a", "b").untested() is None


@pytest.mark.parametrize(("words", "ahead"), [(("w" * 20, "r" * 20), 1), (("r" * 20, "w" * 20), -1)])
def test_the_second_solver_is_ahead_or_behind(words: tuple[str, str], ahead: int) -> None:
    assert shared_of(compared(*words), "a", "b").shown("guess") == ahead


def test_equal_solvers_are_neither_and_failures_are_not_tested() -> None:
    assert shared_of(compared("rw" * 20, "wr" * 20), "a", "b").shown("guess") == 0
    # The intervals touch 0.
    for words in (("w" * 10, "r" * 4 + "w" * 6), ("r" * 4 + "w" * 6, "w" * 10)):
        touching = shared_of(compared(*words), "a", "b")
        interval = contrast(*(touching.headline("guess") or ())).interval
        assert interval is not None
        assert 0 in (interval.low, interval.high)
        assert touching.shown("guess") == 0
    assert shared_of(compared("r" * 19 + "f", "w" * 20, allow_failed=False), "a", "b").shown("guess") is None


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        # A guess is worth a half; by the other rule the abstaining solver scores less.
        ("rw" * 20, "a" * 38 + "rw", "b is behind a"),
        ("a" * 38 + "rw", "rw" * 20, "b is ahead of a"),
        ("wwww" + "rw" * 20, "rrrr" + "a" * 40, "b is behind a"),
        ("r" * 10 + "w" * 30, "r" * 10 + "a" * 30, "b is not significantly different from a"),
        # Both rules give the same verdict.
        ("r" * 40, "w" * 20 + "a" * 20, None),
        ("r" * 40, "w" * 40, None),
    ],
)
def test_the_verdict_by_the_other_rule(a: str, b: str, sentence: str | None) -> None:
    comparison = compared(a, b)
    rows = ConclusionRows(comparison, ())
    assert rows.otherwise(comparison.named("a"), comparison.named("b")) == sentence


def test_a_mean_over_tasks_waits_for_open_questions_and_a_count_does_not() -> None:
    letters = {"Counting": "rw" * 10, "Jigsaw": "rw" * 10}
    for open_a, open_b in ((1, 0), (0, 1), (0, 0)):
        comparison = compare([solver("a", letters, open=open_a), solver("b", letters, open=open_b)])
        shared = shared_of(comparison, "a", "b")
        metrics = shared.headline("guess")
        assert metrics is not None
        assert metrics[0].combine == "mean_of_ratios"
        assert shared.untested(metrics) == ("waiting" if open_a or open_b else None)
        assert shared.untested() is shared.untested(shared.accuracy("guess")) is None


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ("a" * 20, "r" * 20, "unanswered"),
        ("r" * 20, "u" * 20, "unanswered"),
        ("a" * 19 + "w", "r" * 20, None),
        # The only answer is to a question that the other failed or was not asked.
        ("a" * 19 + "w", "r" * 19 + "f", "unanswered"),
        ("a" * 19 + "w", "r" * 19 + ".", "unanswered"),
    ],
)
def test_who_answers_nothing_of_what_both_have_is_not_tested(a: str, b: str, reason: str | None) -> None:
    shared = shared_of(compared(a, b), "a", "b")
    assert shared.untested() == shared.untested(shared.headline("guess")) == reason


def test_only_the_compared_solvers_need_answers() -> None:
    solvers = [solver(name, {"Jigsaw": word}) for name, word in (("a", "a" * 20), ("b", "w" * 20), ("c", "r" * 20))]
    shared = compare(solvers).overlap(*solvers)
    a, b, c = shared.headline("guess") or ()
    assert shared.untested() == shared.untested((a, b, c)) == shared.untested((a, c), (solvers[0], solvers[2]))
    assert shared.untested() == "unanswered"
    assert shared.untested((b, c), solvers[1:]) is shared.untested(None, solvers[1:]) is None
    assert (shared.without_answers(), shared.without_answers((b, c), solvers[1:])) == ((solvers[0],), ())


def test_other_units_are_not_tested() -> None:
    shared = shared_of(compared("rw" * 10, "wr" * 10), "a", "b")
    a, b = shared.accuracy("guess")
    assert shared.untested((a, b)) is None
    assert shared.untested((a, replace(b, cells=b.cells[1:]))) == "units"
    of_task = tuple(cell._replace(stratum="Jigsaw") for cell in b.cells)
    assert shared.untested((a, replace(b, cells=of_task))) == "units"


def test_answers_count_only_in_the_units_of_the_metric_and_where_both_have_the_question() -> None:
    shared = shared_of(compared("a" * 10 + "w" * 10, "r" * 20), "a", "b")
    metrics = shared.accuracy("guess")
    assert shared.untested(metrics) is None
    assert shared.untested([replace(metric, cells=metric.cells[:10]) for metric in metrics]) == "unanswered"
    # Add a unit for the question that `a` answered and `b` failed.
    shared = shared_of(compared("a" * 19 + "w", "r" * 19 + "f"), "a", "b")
    metrics = shared.accuracy("guess")
    more = Cell("", "Jigsaw_20", 0.0, 1.0)
    assert shared.untested([replace(metric, cells=(*metric.cells, more)) for metric in metrics]) == "unanswered"


def test_metrics_name_the_tasks_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_answer(benchmark: Benchmark, questions: Any, scores: Sequence[Score]) -> tuple[Metric, ...]:
        metric = Metric("of A", 1.0, 1, "ratio", (Cell("", "u", 1.0, 1.0),))
        has_cells = any(score.answer == "A" and not score.outcome.failed for score in scores)
        return (metric if has_cells else replace(metric, cells=()), replace(metric, name="of all"))

    monkeypatch.setattr(overlap, "summary", by_answer)
    a, b = solver("a", {"Jigsaw": "wr", "Counting": "ww"}), solver("b", {"Jigsaw": "wf", "Counting": "ww"})
    comparison = compare([a, replace(a, solver="like a"), b], ComparisonOptions(allow_failed=True))
    of_both = {"of all": ["Counting", "Jigsaw"]}
    # One solver failed the only question with the answer A, so the pair has no task of that metric.
    assert shared_of(comparison, "a", "b").tasks_by_metric() == of_both
    of_a = shared_of(comparison, "a", "like a")
    assert of_a.tasks_by_metric() == of_both | {"of A": ["Jigsaw"]}
    assert of_a.at(np.array([0, 1])).tasks_by_metric() == {"of A": ["Jigsaw"], "of all": ["Jigsaw"]}
    # The result for all questions is computed once and kept.
    monkeypatch.setattr(overlap, "summary", None)
    assert of_a.tasks_by_metric() == of_both | {"of A": ["Jigsaw"]}


def test_one_of_a_hundred_that_failed_is_not_too_many() -> None:
    assert shared_of(compared("r" * 99 + "f", "w" * 100, allow_failed=False), "a", "b").untested() is None
    # Questions that one solver was not asked are not among those that could fail.
    unasked = shared_of(compared("r" * 89 + "." * 10 + "f", "w" * 100, allow_failed=False), "a", "b")
    assert unasked.untested() == "failed"


@pytest.mark.parametrize("seed", range(5))
def test_metrics_are_of_the_shared_questions_with_a_verdict(seed: int) -> None:
    """Metrics cover the shared questions with a verdict. One in six questions of the tasks (30 and 8) has none, and the
    headline is the mean over tasks."""
    rng, sizes = random.Random(seed), {"Jigsaw": 30, "Counting": 8}
    neither = {(task, n) for task, size in sizes.items() for n in range(size) if n % 6 == 2}

    def draw(task: str) -> str:
        letters = enumerate(rng.choices("rwaf.", (6, 6, 3, 1, 1), k=sizes[task]))
        return "".join("n" if (task, n) in neither and letter in VALUES else letter for n, letter in letters)

    words = [{task: draw(task) for task in sizes} for _ in "ab"]
    shared = shared_of(compare([solver(name, word) for name, word in zip("ab", words, strict=True)]), "a", "b")
    numbers_by_task = {
        task: [n for n in range(size) if {words[0][task][n], words[1][task][n]} <= {*"rwa"}]
        for task, size in sizes.items()
    }
    for rule, credit in (("guess", 0.5), ("wrong", 0.0)):
        values = VALUES | {"a": credit}
        metrics, accuracy = shared.headline(rule), shared.accuracy(rule)  # type: ignore[arg-type]
        assert metrics is not None
        for word, metric, of_all in zip(words, metrics, accuracy, strict=True):
            credit_of = {task: [values[word[task][n]] for n in numbers] for task, numbers in numbers_by_task.items()}
            assert (metric.name, metric.value) == (
                "accuracy_macro",
                pytest.approx(fmean(map(fmean, credit_of.values()))),
            )
            assert (of_all.name, of_all.combine, of_all.n) == (
                "accuracy",
                "ratio",
                sum(map(len, numbers_by_task.values())),
            )
            assert of_all.value == pytest.approx(fmean(chain(*credit_of.values())))
            ids = {f"{task}_{n + 1}" for task, numbers in numbers_by_task.items() for n in numbers}
            assert {cell.cluster for cell in of_all.cells} == {cell.cluster for cell in metric.cells} == ids
            assert {cell.stratum for cell in of_all.cells} == {""}


def test_a_share_leaves_out_zero_denominators_and_another_ratio_does_not() -> None:
    shared = shared_of(compared("rwrf", "rrww"), "a", "b")
    above, below = np.array([1.0, 0.0, 2.0]), np.array([2.0, 0.0, 2.0])
    share, ratio = (shared.ratio("some", above, below, share=flag) for flag in (True, False))
    assert (share.value, share.n, share.share) == (0.75, 2, True)
    assert (ratio.value, ratio.n, ratio.share) == (0.75, 3, False)
    assert share.cells == (Cell("", "Jigsaw_1", 1.0, 2.0), Cell("", "Jigsaw_3", 2.0, 2.0))
    assert shared.ratio("some", above, below) == share
    assert shared.ratio("some", above, below * 0).value is None


def test_who_is_ahead_is_decided_by_the_mean_over_tasks() -> None:
    a = solver("a", {"Jigsaw": "r" * 30 + "w" * 30, "Counting": "w" * 10})
    b = solver("b", {"Jigsaw": "r" * 10 + "w" * 50, "Counting": "r" * 10})
    shared = shared_of(compare([a, b]), "a", "b")
    assert shared.accuracy("guess")[0].value == 30 / 70 > 20 / 70 == (shared.accuracy("guess")[1].value or 0)
    assert shared.shown("guess") == 1
    # Each solver has one question, so there is no interval.
    assert shared_of(compared("r", "w"), "a", "b").shown("guess") is None


def test_a_question_that_a_repetition_was_not_asked_is_not_unanswered() -> None:
    shared = shared_of(compared("r" * 10 + "w" * 9 + "a", b="r" * 20, b_2="." + "w" * 19), "a", "b")
    parts = shared.split_by_answering("wrong")
    assert parts is not None
    # The last question, which `a` leaves unanswered, counts for neither. On the first question `b` has one answer,
    # which is right; on each other question one of its two answers is right.
    assert [metric.value for metric in parts[0]] == pytest.approx([10 / 20, (1 + 9 / 2 + 9 / 2) / 20])
    assert [metric.value for metric in parts[1]] == pytest.approx([0, 1 / 2 / 20])


def test_repetitions_are_averaged_cell_by_cell_within_a_task() -> None:
    def metric(*cells: Cell) -> Metric:
        return Metric("accuracy_macro", None, len(cells), "mean_of_ratios", cells)

    # Two questions about one picture stay two cells; the second repetition has one question more.
    first = metric(Cell("T", "p", 1.0, 1.0), Cell("T", "p", 0.0, 1.0), Cell("U", "p", 1.0, 2.0))
    second = metric(
        Cell("T", "p", 1.0, 1.0), Cell("T", "p", 1.0, 1.0), Cell("U", "p", 0.0, 2.0), Cell("U", "q", 1.0, 1.0)
    )
    mean = _mean_metric([first, second])
    assert mean.cells == (
        Cell("T", "p", 1.0, 1.0),
        Cell("T", "p", 0.5, 1.0),
        Cell("U", "p", 0.5, 2.0),
        Cell("U", "q", 1.0, 1.0),
    )
    assert (mean.value, mean.n) == (pytest.approx((1.5 / 2 + 1.5 / 3) / 2), 4)
    # A metric whose units are not its cells keeps the larger number.
    assert _mean_metric([replace(first, n=7), second]).n == 7
    assert _mean_metric([first]) is first


def test_the_value_of_a_part_is_that_of_its_cells() -> None:
    shared = shared_of(compared("a" * 10 + "r" * 10, "w" * 10 + "r" * 5 + "a" * 5), "a", "b")
    parts = shared.split_by_answering("guess")
    assert parts is not None
    for metric in (*parts[0], *parts[1]):
        assert metric.value == pytest.approx(combine(metric.cells, metric.combine))


def test_groups_are_tasks_or_values_that_any_solver_knows() -> None:
    words = {"Jigsaw": "rwnrw", "Counting": "nn"}
    levels = {"Jigsaw_1": "low", "Jigsaw_2": "high", "Jigsaw_4": "low", "Counting_1": "none", "Counting_2": "none"}

    def with_levels(scored: Scored) -> Scored:
        by_rule = {}
        for rule, value in scored.counted.items():
            scores = tuple(
                replace(score, groups={"level": levels[score.id]} if score.id in levels else {})
                for score in value.scores
            )
            by_rule[rule] = replace(value, scores=scores)
        return replace(scored, counted=by_rule)

    # The first solver does not record the level of any question, and was not asked the first question.
    unknowing = solver("a", {**words, "Jigsaw": ".wnrw"})
    shared = shared_of(compare([unknowing, with_levels(solver("b", words))]), "a", "b")

    def ids(groups: Mapping[str, Overlap]) -> dict[str, list[str]]:
        return {name: sorted(part.ids) for name, part in groups.items()}

    jigsaw = [f"Jigsaw_{n}" for n in range(1, 6)]
    assert ids(shared.groups(None)) == {"Counting": ["Counting_1", "Counting_2"], "Jigsaw": jigsaw}
    assert ids(shared.by_group(None)) == {"Jigsaw": jigsaw}
    by_level = {"-": ["Jigsaw_3", "Jigsaw_5"], "high": ["Jigsaw_2"], "low": ["Jigsaw_1", "Jigsaw_4"]}
    assert ids(shared.by_group("level")) == by_level
    assert list(shared.by_group("level")) == ["-", "high", "low"]
    assert ids(shared.groups("level")) == by_level | {"none": ["Counting_1", "Counting_2"]}


def test_a_solver_that_lacks_a_question_has_no_group_of_it() -> None:
    def known(scored: Scored) -> Scored:
        value = scored.counted["guess"]
        scores = tuple(replace(score, groups={"level": score.id}) for score in value.scores)
        return replace(scored, counted={"guess": replace(value, scores=scores)})

    comparison = compare([known(solver("a", {"Jigsaw": "r.r"})), solver("b", {"Jigsaw": "rrr"})])
    assert set(shared_of(comparison, "a", "b").groups("level")) == {"-", "Jigsaw_1", "Jigsaw_3"}


def test_an_answer_without_right_and_wrong_counts_beside_one_with() -> None:
    # `a` answers only the second of two questions, which is neither right nor wrong. If both questions show one
    # picture, the difference is tested; if they show two pictures, nothing counts.
    for words, reason in ((("a....n", "r....n"), None), (("an", "rn"), "unanswered")):
        solvers = [on_pictures(scored) for scored in compared(*words).solvers]
        assert shared_of(compare(solvers), "a", "b").untested() == reason


@pytest.mark.parametrize("second", ["f" * 40, "a" * 40])
def test_a_metric_of_one_repetition_has_the_clusters_of_its_questions(second: str) -> None:
    # MVP-Bench has no metric for a repetition that failed every question, or that answered none if unanswered questions
    # are left out.
    words = {"a": "r" * 20 + "w" * 20, "a@2": second, "b": "r" * 30 + "w" * 10}
    shared = shared_of(compare([on_mvp(name, word) for name, word in words.items()]), "a", "b")
    view = shared if "f" in second else shared.with_answers()
    metrics = view.headline("wrong") or ()
    assert [metric.value for metric in metrics] == [0.5, 0.75]
    assert [{cell.cluster for cell in metric.cells} for metric in metrics] == [{f"q{n}" for n in range(40)}] * 2
    assert view.untested(metrics) is None


def test_the_questions_of_a_part_come_with_those_that_failed() -> None:
    # The last answer is neither right nor wrong, which is no failure.
    shared = shared_of(compared("rwf.rn", "wrrwrn"), "a", "b")
    part = shared.with_failed(np.array([True, *[False] * 5]))
    assert part.ids.tolist() == ["Jigsaw_1", "Jigsaw_3", "Jigsaw_4"]
    assert (part.n, part.full, part.left_out) == (
        1,
        shared,
        "left out: 1 that one of them failed, 1 that one of them was not asked",
    )
    two_failed = shared_of(compared("rff.", "wrrw"), "a", "b").left_out
    assert two_failed == "left out: 2 that one of them failed, 1 that one of them was not asked"
    assert (shared.at(np.array([0])).left_out, shared.answer[0].tolist()) == ("", ["A", "B", None, "A", "C", None])


def test_the_other_rule_matters_if_one_repetition_is_silent() -> None:
    # Counted as a guess, the silent half of `b` is worth as much as the answers of `a`; counted as wrong, it is worth
    # nothing.
    comparison = compared("rw" * 20, b="a" * 40, b_2="rw" * 20)
    rows = ConclusionRows(comparison, ())
    assert rows.otherwise(comparison.named("a"), comparison.named("b")) == "b is behind a"


def test_only_metrics_of_all_solvers_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    def some(benchmark: Benchmark, questions: Any, scores: Sequence[Score]) -> tuple[Metric, ...]:
        first = scores[0].answer == "A"
        of_both, of_a = (
            Metric("accuracy_macro", 1.0, 1, "ratio", (Cell("", "u", 1.0, 1.0),)),
            Metric("a", 1.0, 1, "ratio"),
        )
        return (of_both, replace(of_a, cells=of_both.cells), replace(of_a, name="empty")) if first else (of_both,)

    monkeypatch.setattr(overlap, "summary", some)
    shared = shared_of(compared("r.", "ww"), "a", "b")
    assert set(shared.metrics("guess")) == {"accuracy_macro"}
    assert set(shared_of(compared("r.", "rw"), "a", "b").metrics("guess")) == {"accuracy_macro", "a"}
    shared = shared_of(compared("r", "w"), "a", "b")
    shared._known["guess"] = {}
    assert shared.headline("guess") is None
    assert shared.shown("guess") is None
    assert shared.split_by_answering("guess") is None


def test_a_metric_over_whole_clusters_keeps_its_cells_where_repetitions_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_cluster(benchmark: Benchmark, questions: Any, scores: Sequence[Score]) -> tuple[Metric, ...]:
        units: dict[str, list[float]] = {}
        for score in scores:
            if not score.outcome.failed:
                units.setdefault(score.unit, []).append(score.correct or 0.0)
        cells = tuple(Cell("", unit, min(values), 1.0) for unit, values in units.items())
        return (Metric("accuracy_macro", None, len(cells), "ratio", cells),)

    words = {"a": "rw" * 5, "a@2": "." + "wr" * 4 + "r", "b": "r" * 10}
    comparison = compare([on_pictures(solver(name, {"Jigsaw": word})) for name, word in words.items()])
    monkeypatch.setattr(overlap, "summary", by_cluster)
    a, b = shared_of(comparison, "a", "b").metrics("wrong")["accuracy_macro"]
    assert [len(metric.cells) for metric in (a, b)] == [5, 5]


def test_a_question_that_a_solver_lacks_is_left_out_with_its_own_unit() -> None:
    # a lacks a rotation of the second of three groups, and is wrong in the last.
    whole = on_mvp("a", "rrrr" * 2 + "wwww", rotations=True)
    lacks = {
        rule: replace(value, scores=tuple(score for score in value.scores if score.id != "q1#s2"))
        for rule, value in whole.counted.items()
    }
    questions = {name: question for name, question in whole.questions.items() if name != "q1#s2"}
    a, b = replace(whole, counted=lacks, questions=questions), on_mvp("b", "rrrr" * 3, rotations=True)
    metrics = shared_of(compare([a, b]), "a", "b").headline("wrong") or ()
    assert [(metric.n, metric.value) for metric in metrics] == [(2, 0.5), (2, 1.0)]


def test_answers_without_right_and_wrong_count_in_the_metrics_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    comparison = compared("rn.a", "rnwr")
    monkeypatch.setattr(overlap, "summary", share_not_wrong)
    shared = shared_of(comparison, "a", "b")
    assert [metric.n for metric in shared.headline("wrong") or ()] == [3, 3]
    # Both gave the same answers to two of three questions, and only b answered the third.
    parts = shared.split_by_answering("wrong")
    assert parts is not None
    differences = [(b.value or 0.0) - (a.value or 0.0) for a, b in parts]
    assert differences == pytest.approx([0, 1 / 3])


def test_repetitions_are_averaged_by_question_if_one_lacks_an_answer_without_right_and_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The first and the last question show one picture; the second repetition was not asked the first question.
    comparison = compare([on_pictures(each) for each in compared("nrrrrw", a_2=".rrrrr", b="nrrrrr").solvers])
    monkeypatch.setattr(overlap, "summary", share_not_wrong)
    a, _ = shared_of(comparison, "a", "b").headline("wrong") or ()
    assert sorted(cell.numerator for cell in a.cells if cell.cluster == "picture 1") == [0.5, 1.0]
