"""The last sentence of a conclusion: each limit with the solver's own counts, for hand-written answers."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.core.image_clusters import PICTURE
from hybrid.core.types import Cell, Metric, Score, Usage
from hybrid.scoring.compare import ComparisonOptions, compare
from hybrid.scoring.conclusion_limits import _weights, limits_of
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.score import Scored
from tests.hybrid.scoring.solvers import GENERATED, letters, solver

GENERATED_QUESTIONS, RECORDED = "generated questions say nothing of real pictures", "the model's answers are recordings"


def limits(*solvers: Scored, options: ComparisonOptions | None = None) -> list[str]:
    comparison = compare(solvers, options)
    return list(limits_of(ConclusionRows(comparison), comparison.groups))


def of(name: str, word: str, **changes: Any) -> Scored:
    return solver(name, {"Jigsaw": letters(word)}, **{"recorded": f"{name} recorded", **changes})


def test_each_solver_has_its_own_counts() -> None:
    many = of("a", "25r 3a 2u 1f 5r", data=GENERATED, open=4)
    assert limits(many, of("b", "20r 14w 2f", data=GENERATED)) == [
        "failed and left out: a 1 of 36, b 2 of 36",
        "not finished yet: a 4 of 40",
        "unanswered questions count as a guess: a 5 of 35",
        GENERATED_QUESTIONS,
        RECORDED,
    ]
    assert limits(of("a", "25r 3f"), of("b", "28r")) == ["failed and left out: a 3 of 28", RECORDED]
    assert limits(of("a", "25r"), of("b", "25r", open=3)) == ["not finished yet: b 3 of 28", RECORDED]
    none = [replace(solver, unanswered="wrong") for solver in (of("b", "20r 16w"), of("c", "6r 30u"))]
    assert limits(*none)[0] == "unanswered questions count as wrong: c 30 of 36"


@pytest.mark.parametrize("failed", ["mllm", "mllm@2"])
def test_a_repetition_that_failed_entirely_has_no_unanswered_questions(failed: str) -> None:
    words = {name: "36f" if name == failed else "20r 12w 4u" for name in ("mllm", "mllm@2")}
    solvers = [solver(name, {"Jigsaw": letters(word)}, unanswered="wrong") for name, word in words.items()]
    assert limits(*solvers)[:2] == [
        "failed and left out: mllm 36 of 72 (2 repetitions)",
        "unanswered questions count as wrong: mllm 4 of 36",
    ]


def test_a_first_repetition_that_failed_entirely_does_not_hide_the_weights_of_tasks() -> None:
    answers = {"mllm": ("36f", "4f"), "mllm@2": ("20r 16w", "2r 2w")}
    solvers = [
        solver(name, {"Counting": letters(many), "Jigsaw": letters(few)}) for name, (many, few) in answers.items()
    ]
    assert "task Jigsaw has 4 questions of 40 and half of the weight" in limits(*solvers)


def test_one_solver_of_generated_questions_is_enough_for_their_limit() -> None:
    predictions = of("b", "20r 16w", data=replace(GENERATED, facts={}))
    assert limits(of("a", "30r 6w", data=GENERATED), predictions)[0] == GENERATED_QUESTIONS


def test_partial_predictions_state_their_number_and_that_of_the_data() -> None:
    part = of("part", "14r 6w", origin=SimpleNamespace(missing=["q1", "q2", "q3"]))
    whole = of("whole", "14r 6w", origin=SimpleNamespace(missing=[]))
    (words,) = [line for line in limits(part, whole) if "predictions" in line]
    assert words == "part has predictions for 20 of 23 questions of the data"


def test_calls_that_could_not_be_read_are_counted_for_each_solver_and_named_above_one_in_twenty() -> None:
    few, many = (of(name, "30r 10w", usage=Usage(unreadable=n)) for name, n in (("few", 2), ("many", 3)))
    (words,) = [limit for limit in limits(few, many) if "could not be read" in limit]
    assert words == "many wrote calls that could not be read about 3 of 40 questions"
    # Solvers that no sentence is about are not mentioned.
    judged = replace(many, solver="many (judged)", read_by_judge=True)
    assert not any("could not be read" in limit for limit in limits(few, judged))


def test_answers_that_a_judge_read_are_not_counted_again() -> None:
    judged = of("a (judged)", "30r 6u", read_by_judge=True)
    assert "a 6 of 36" in limits(of("a", "30r 6u"), judged)[0]
    assert "judged" not in limits(of("a", "30r 6u"), judged)[0]


@pytest.mark.parametrize(
    ("words", "power"),
    [
        (("30r 5w", "20r 15w"), "this run can detect differences of about 24 points (80% power, 35 questions)"),
        # Of several pairs, the one with the largest detectable difference counts: solvers one and three differ on most
        # questions.
        (
            ("30r 5w", "20r 15w", "2r 33w"),
            "this run can detect differences of about 39 points (80% power, 35 questions)",
        ),
        (
            ("2r 33w", "20r 15w", "30r 5w"),
            "this run can detect differences of about 39 points (80% power, 35 questions)",
        ),
        # A difference that only one rule supports was tested, and so was a difference without an interval.
        (("10w 25r", "10a 25r"), "this run can detect differences of about 12 points (80% power, 35 questions)"),
        (("1r", "1w"), "1 question cannot show any difference"),
        (("3r 1w", "1r 3w"), "4 questions cannot show any difference"),
        (("30r 5w", "20r 15w", "3r 1w"), "4 questions cannot show any difference"),
    ],
)
def test_the_power_is_that_of_the_pair_that_detects_least(words: tuple[str, ...], power: str) -> None:
    solvers = [of(name, word) for name, word in zip("abc", words, strict=False)]
    assert limits(*solvers)[-2:] == [RECORDED, power]


def test_a_question_that_failed_does_not_add_to_the_power() -> None:
    options = ComparisonOptions(allow_failed=True)
    lines = limits(of("a", "30r 4w 1f"), of("b", "20r 15w"), options=options)
    assert lines[-1] == "this run can detect differences of about 24 points (80% power, 34 questions)"


@pytest.mark.parametrize(
    ("a", "b", "options"),
    [
        ("30r 4w 1f", "20r 15w", ComparisonOptions()),
        ("35u", "20r 15w", ComparisonOptions()),
        ("30r 5w", "20r 15w", ComparisonOptions(pairs=())),
    ],
)
def test_what_was_not_tested_has_no_power(a: str, b: str, options: ComparisonOptions) -> None:
    assert limits(of("a", a), of("b", b), options=options)[-1] == RECORDED


def test_a_gain_has_the_limits_of_its_solvers_and_the_power_of_its_pair(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {"controller": "20r 18w 2u", "mllm": "16r 23w 1u", "specialist": "8r 32a"}
    blank = {"controller": {"Jigsaw": letters("4w 36u")}}
    by_solver = {name: {"Jigsaw": letters(word)} for name, word in answers.items()}
    costing = {"costing": synthetic_runs.calling}
    paths = [
        synthetic_runs.from_letters(tmp_path / "real", by_solver, **costing).path,
        synthetic_runs.from_letters(tmp_path / "blank", blank, tool_output="blank", **costing).path,
    ]
    comparison = compare_paths(paths).comparison
    lines = list(limits_of(ConclusionRows(comparison), comparison.groups))
    # The specialist's abstentions are stated in another sentence. Counted as guesses, the answers that are missing with
    # blank tools are half right.
    assert lines == [
        "unanswered questions count as wrong: controller 2 of 40, mllm 1 of 40, controller [blank] 36 of 40",
        (
            "with unanswered questions counted as a guess, "
            "controller is not significantly different from controller [blank]"
        ),
        "this run can detect differences of about 17 points (80% power, 40 questions)",
    ]
    # If the model alone is left out, the pair with the specialist counts; if both are left out, the pair with blank
    # tools.
    powers = []
    for left_out in (("mllm",), ("mllm", "specialist")):
        fewer = compare([solver for solver in comparison.solvers if solver.solver not in left_out])
        powers += [*limits_of(ConclusionRows(fewer), fewer.groups)][-1:]
    assert [power.partition(" points")[0] for power in powers] == [
        f"this run can detect differences of about {size}" for size in (23, 29)
    ]


@pytest.mark.parametrize(
    ("models", "are_recordings"), [(("replay:a", "made:b"), True), (("made:a", "made:b"), False), ((None, None), False)]
)
def test_one_recorded_model_is_enough_for_its_limit(
    models: tuple[str | None, ...], are_recordings: bool, synthetic_runs: Any, tmp_path: Path
) -> None:
    folders = []
    for number, (model, word) in enumerate(zip(models, ("30r 10w", "20r 20w"), strict=True)):
        run = synthetic_runs.from_letters(tmp_path / f"run{number}", {"mllm": {"Jigsaw": letters(word)}})
        identity = {**run.manifest["identity"], "model": model and {"model": model}}
        run.write_manifest({**run.manifest, "identity": identity})
        folders.append(run.path)
    comparison = compare_paths(folders).comparison
    assert (RECORDED in limits_of(ConclusionRows(comparison), ())) is are_recordings


def test_shared_pictures_are_those_of_all_solvers() -> None:
    def pictured(name: str, task: str, clusters: Sequence[str]) -> Scored:
        scored = solver(name, {task: "r" * len(clusters)}, recorded=f"{name} recorded")
        counted = {
            rule: replace(value, scores=tuple(map(in_cluster, value.scores, clusters)))
            for rule, value in scored.counted.items()
        }
        return replace(scored, counted=counted)

    def in_cluster(score: Score, cluster: str) -> Score:
        return replace(score, cluster=cluster)

    first, second = [f"{PICTURE}{n}" for n in "1122"], [f"{PICTURE}{n}" for n in "344"]
    words = "{} questions show {} pictures"
    assert words.format(4, 2) in limits(pictured("a", "Jigsaw", first), pictured("b", "Jigsaw", first))
    assert words.format(7, 4) in limits(pictured("a", "Jigsaw", first), pictured("b", "Counting", second))
    # Predictions without pictures do not hide that a run's questions share pictures.
    assert words.format(4, 2) in limits(pictured("a", "Jigsaw", first), pictured("b", "Jigsaw", [""] * 4))
    assert not [line for line in limits(pictured("a", "Jigsaw", ["scene 1"] * 4)) if "show" in line]


def test_a_task_is_heavy_from_three_times_the_weight_of_its_questions() -> None:
    def words(combine: Any = "mean_of_ratios", headline: str = "accuracy_macro", **sizes: int) -> list[str]:
        cells = [Cell(task, f"{task}{n}", 1.0, 1.0) for task, size in sizes.items() for n in range(size)]
        # A cell without a denominator is not a question of the metric.
        cells += [Cell("small", f"none{n}", 0.0, 0.0) for n in range(100)]
        other = Metric("accuracy_micro", 1.0, len(cells), "mean_of_ratios", tuple(cells[: len(cells) // 2]))
        metric = Metric("accuracy_macro", 1.0, len(cells), combine, tuple(cells))
        return list(_weights([other, metric], headline))

    assert words(large=50, small=10) == ["task small has 10 questions of 60 and half of the weight"]
    assert words(large=49, small=10) == []
    assert words(large=50, small=10, combine="ratio") == words(large=50, small=10, headline="other") == []
    assert words(large=60, middle=21, small=9) == ["task small has 9 questions of 90 and 1/3 of the weight"]
