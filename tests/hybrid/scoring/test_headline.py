"""The two tables of a comparison and the line on its rule, for hand-written answers: values, baselines, marks,
unanswered questions."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.types import Cell, Metric
from hybrid.display.tables import Table
from hybrid.scoring.compare import Comparison, ComparisonOptions, SolverPair, compare
from hybrid.scoring.headline import (
    COUNTED,
    MARKS,
    TASKS_WHERE_ANSWERED,
    WHERE_ANSWERED,
    _tasks,
    headline_tables,
    rule_line,
)
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.score import Counted, Scored
from hybrid.scoring.sections import results
from tests.hybrid.scoring.solvers import letters, on_mvp, solver

# The solver with tools is better on Counting and worse on Jigsaw. The specialist, asked before the model alone, answers
# a part of Counting and nothing of Relative_Depth.
ANSWERS = {
    "controller": {"Counting": "50r 10w", "Jigsaw": "16w 2u 2r", "Relative_Depth": "6r 4w"},
    "specialist": {"Counting": "24r 8w 28a", "Jigsaw": "17r 3w", "Relative_Depth": "10a"},
    "mllm": {"Counting": "3r 42w 15r", "Jigsaw": "12r 8w", "Relative_Depth": "4r 1u 5w"},
}
BLANK = {"controller": {"Counting": "10r 50w", "Jigsaw": "12w 7r 1u", "Relative_Depth": "3r 7w"}}
DIFFERENCE = ("diff.", "95 %", "p (Holm, claim)")


@pytest.fixture
def comparison(synthetic_runs: Any, tmp_path: Path) -> Comparison:
    """Return the comparison of a run with real tools and one with blank tools."""
    paths = []
    for name, answers in (("real", ANSWERS), ("blank", BLANK)):
        words = {by: {task: letters(word) for task, word in tasks.items()} for by, tasks in answers.items()}
        paths.append(synthetic_runs.from_letters(tmp_path / name, words, tool_output=name).path)
    # A solver's name in a comparison may differ from its name in the run.
    solvers = compare_paths(paths).solvers
    return compare(
        [replace(item, solver="specialist (rules)") if item.solver == "specialist" else item for item in solvers]
    )


def test_every_number_of_both_tables_follows_from_the_answers(comparison: Comparison) -> None:
    solvers, tasks = headline_tables(comparison)
    assert solvers.title == "blink: accuracy_macro, differences to mllm"
    assert [column.name for column in solvers.columns] == ["solver", "value", "95 %", "answered", *DIFFERENCE]
    # 0.511 is the mean of 50/60, 2/20 and 6/10. The specialist has (24/32 + 17/20) / 2 on the questions that it
    # answers. Over all questions it has (24/60 + 17/20 + 0) / 3, which is 0.017 less than the model alone.
    assert solvers.rows == (
        ("controller", "0.511", "[0.39, 0.63]", "88/90", "+0.078", "[-0.09, 0.26]", "0.340"),
        ("specialist (rules)", "0.800*", "[0.66, 0.89]", "52/90", "-0.017", "[-0.17, 0.14]", "0.824"),
        ("mllm", "0.433", "[0.31, 0.57]", "89/90", "-", "-", "-"),
        ("controller [blank]", "0.272", "[0.17, 0.42]", "89/90", "-0.161", "[-0.34, 0.02]", "0.080"),
    )
    assert solvers.notes == (WHERE_ANSWERED,)
    assert tasks.title == "blink: accuracy by task"
    assert [column.name for column in tasks.columns] == ["task", *(row[0] for row in solvers.rows)]
    assert tasks.rows == (
        ("Counting", "0.833+", "0.750*", "0.300 ", "0.167 "),
        ("Jigsaw", "0.100-", "0.850 ", "0.600 ", "0.350 "),
        ("Relative_Depth", "0.600 ", "- ", "0.400 ", "0.300 "),
    )
    assert tasks.notes == (TASKS_WHERE_ANSWERED, MARKS)


def test_the_order_of_rows_decides_nothing(comparison: Comparison) -> None:
    """The tables do not depend on the order of rows. Tasks of uneven size have a second difference, over all questions,
    in the same section."""
    tables = headline_tables(comparison)
    for name, result in comparison.computed.items():
        comparison.computed[name] = replace(result, rows=result.rows[::-1])
    assert headline_tables(comparison) == tables


def test_tasks_below_another_metric_say_that_they_have_accuracy() -> None:
    """A single task has no mAcc, and its accuracy is not the share of whole groups of rotations."""
    rotations = compare([on_mvp(name, "rrrw" * 10, rotations=True) for name in ("mllm", "controller")])
    assert rotations.headline == "circular.single"
    assert headline_tables(rotations)[0].title.startswith("mvp_bench: circular.single")
    tasks = _tasks_of(rotations)
    assert [row[1].strip() for row in tasks.rows] == ["0.750"]
    assert tasks.notes == ("By task: the accuracy of single questions, not circular.single.",)
    blink = compare([solver(name, {"Jigsaw": "rw", "Counting": "rr"}) for name in ("mllm", "controller")])
    assert headline_tables(blink)[1].notes == ()


def _tasks_of(comparison: Comparison) -> Table:
    """Return the table of tasks, also of a single task, for which nothing is printed."""
    (result,) = results(comparison, ("tasks",))
    return _tasks(comparison, result.rows, (), {})


def test_a_note_names_no_column_that_is_not_there(tmp_path: Path, synthetic_runs: Any) -> None:
    """A specialist by itself has no differences."""
    answers = {"specialist": {"Jigsaw": letters("12r 4w 4a")}, "mllm": {"Jigsaw": letters("10r 10w")}}
    for names, note in (
        (["specialist"], "*: over the questions that the specialists answer."),
        (["specialist", "mllm"], WHERE_ANSWERED),
    ):
        run = synthetic_runs.from_letters(tmp_path / "-".join(names), {name: answers[name] for name in names})
        table = headline_tables(compare_paths([run.path]).comparison)[0]
        assert table.notes == (note,)
        assert ("diff." in table.names) is ("difference" in note)


def test_a_task_without_answers_has_a_value_except_for_a_specialist(synthetic_runs: Any, tmp_path: Path) -> None:
    # A specialist that answers the only question of a task has answered the whole task.
    answers = {
        "mllm": {"Counting": letters("6r 4w"), "Jigsaw": "u", "Relative_Depth": "rrw"},
        "specialist": {"Counting": letters("5r 5a"), "Jigsaw": "r", "Relative_Depth": "aaa"},
    }
    run = synthetic_runs.from_letters(tmp_path / "run", answers)
    tasks = headline_tables(compare_paths([run.path]).comparison)[1]
    assert tasks.rows == (
        ("Counting", "0.600 ", "1.000*"),
        ("Jigsaw", "0.000 ", "1.000 "),
        ("Relative_Depth", "0.667 ", "- "),
    )


def test_chosen_pairs_choose_the_baselines_and_the_signs(comparison: Comparison) -> None:
    pairs = (("controller", "mllm"), ("specialist (rules)", "mllm"), ("controller", "specialist (rules)"))
    paired = compare(comparison.solvers, ComparisonOptions(pairs=tuple(SolverPair(*pair) for pair in pairs)))
    solvers, tasks = headline_tables(paired)
    # If a solver is in two pairs, the first pair decides.
    assert solvers.title == "blink: accuracy_macro, differences to controller"
    assert [row[4:] for row in solvers.rows] == [
        ("-", "-", "-"),
        ("-0.094", "[-0.27, 0.07]", "0.238"),
        ("-0.078", "[-0.26, 0.09]", "0.340"),
        ("-", "-", "-"),
    ]
    # The specialist has its mark on Jigsaw, where it answers everything: 0.85 against 0.1.
    assert [row[1:4] for row in tasks.rows] == [
        ("0.833 ", "0.750*", "0.300-"),
        ("0.100 ", "0.850+", "0.600+"),
        ("0.600 ", "- ", "0.400 "),
    ]
    reverse = compare(comparison.solvers, ComparisonOptions(pairs=(SolverPair("mllm", "specialist (rules)"),)))
    (table, _) = headline_tables(reverse)
    assert [row[4] for row in table.rows] == ["-", "-0.017", "-", "-"]


def test_several_baselines_are_no_name_in_the_title(comparison: Comparison) -> None:
    pairs = (SolverPair("mllm", "controller"), SolverPair("controller [blank]", "specialist (rules)"))
    solvers, _ = headline_tables(compare(comparison.solvers, ComparisonOptions(pairs=pairs)))
    assert solvers.title == "blink: accuracy_macro, differences to the model alone"
    assert [row[4] for row in solvers.rows] == ["+0.078", "+0.144", "-", "-"]


def test_each_solver_is_next_to_its_own_model_alone(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {
        "one": ("real", {"controller": "12r 8w", "mllm": "4r 16w", "specialist": "9r 11w"}),
        "two": ("real", {"controller": "15r 5w", "mllm": "10r 10w"}),
        "two-blank": ("blank", {"controller": "8r 12w"}),
        "two-shuffled": ("shuffled", {"controller": "7r 13w"}),
    }
    paths = []
    for name, (output, words) in answers.items():
        by_solver = {by: {"Jigsaw": letters(word)} for by, word in words.items()}
        run = synthetic_runs.from_letters(tmp_path / name, by_solver, tool_output=output)
        identity = {**run.manifest["identity"], "model": {"model": name.partition("-")[0]}}
        run.write_manifest({**run.manifest, "identity": identity})
        paths.append(run.path)
    table = headline_tables(compare_paths(paths).comparison)[0]
    assert table.title == "blink: accuracy_macro, differences to the model alone"
    assert {row[0]: row[4] for row in table.rows} == {
        "controller [one]": "+0.400",
        "mllm [one]": "-",
        "specialist": "+0.250",
        "controller [two]": "+0.250",
        # The second MLLM alone is also a baseline.
        "mllm [two]": "-",
        "controller [two; blank]": "-0.100",
        "controller [two; shuffled]": "-0.150",
    }


def test_without_the_model_alone_the_specialists_are_the_baseline(synthetic_runs: Any, tmp_path: Path) -> None:
    answers = {"controller": {"Jigsaw": letters("15r 5w")}, "specialist": {"Jigsaw": letters("9r 11w")}}
    run = synthetic_runs.from_letters(tmp_path / "run", answers)
    (table,) = headline_tables(compare_paths([run.path]).comparison)
    assert table.title == "blink: accuracy_macro, differences to specialist"
    assert [(row[0], row[4]) for row in table.rows] == [("controller", "+0.300"), ("specialist", "-")]


def test_without_tools_the_first_of_the_pairs_is_the_baseline() -> None:
    words = {"text_only": "4r 16w", "mllm": "14r 6w", "captions": "17r 3w"}
    solvers = [solver(name, {"Jigsaw": letters(word)}, recorded=f"{name} recorded") for name, word in words.items()]
    (table,) = headline_tables(compare(solvers))
    assert table.title == "blink: accuracy_macro, differences to text_only"
    # Three pairs are tested, so that each p value is adjusted.
    rows = [("text_only", "-", "-"), ("mllm", "+0.500", "0.002"), ("captions", "+0.650", "<0.001")]
    assert [(row[0], row[4], row[6]) for row in table.rows] == rows
    assert table.notes == ()
    (alone,) = headline_tables(compare(solvers[:1]))
    assert (alone.title, len(alone.columns)) == ("blink: accuracy_macro", 4)
    assert alone.rows == (("text_only", "0.200", "[0.08, 0.42]", "20/20"),)


@pytest.mark.parametrize(
    ("better", "worse", "ends"),
    [
        (12, 4, "[0.001, 0.395]"),
        (4, 12, "[-0.395, -0.001]"),
        (12, 2, "[0.08, 0.43]"),
        (2, 12, "[-0.43, -0.08]"),
        (10, 3, "[-0.003, 0.356]"),
    ],
)
def test_an_end_near_0_has_the_decimals_that_show_its_side(better: int, worse: int, ends: str) -> None:
    same = "rw" * ((40 - better - worse) // 2) + "r" * ((better + worse) % 2)
    a = solver("a", {"Jigsaw": "w" * better + "r" * worse + same})
    b = solver("b", {"Jigsaw": "r" * better + "w" * worse + same})
    (table,) = headline_tables(compare([a, b]))
    assert table.rows[1][5] == ends


def test_tasks_without_marks_have_no_column_for_them() -> None:
    a = solver("a", {"Counting": "rw" * 5, "Jigsaw": "rw" * 10})
    tasks = headline_tables(compare([a]))[1]
    assert (tasks.rows, tasks.notes) == ((("Counting", "0.500"), ("Jigsaw", "0.500")), ())
    # The second solver was not asked one of the tasks.
    tasks = headline_tables(compare([a, solver("b", {"Jigsaw": "rw" * 10})]))[1]
    assert tasks.rows == (("Counting", "0.500", "-"), ("Jigsaw", "0.500", "0.500"))


def test_a_solver_without_answers_has_no_value() -> None:
    words = {"a": "r" * 10 + "w" * 10, "b": "f" * 20, "c": "u" * 20}
    (table,) = headline_tables(compare([solver(name, {"Jigsaw": word}) for name, word in words.items()]))
    assert [row[1:4] for row in table.rows] == [
        ("0.500", "[0.30, 0.70]", "20/20"),
        ("-", "-", "0/20"),
        ("0.500", "-", "0/20"),
    ]


def test_marks_of_one_sign_are_explained() -> None:
    worse, better = ({"Counting": "rw" * 5, "Jigsaw": letter * 20} for letter in "wr")
    for words, cell in (((worse, better), "1.000+"), ((better, worse), "0.000-")):
        tasks = headline_tables(compare([solver(name, word) for name, word in zip("ab", words, strict=True)]))[1]
        assert (tasks.rows[1][2], tasks.notes) == (cell, (MARKS,))


def test_a_metric_that_is_no_share_keeps_its_digits() -> None:
    cells = tuple(Cell("", f"Jigsaw_{n}", 12.345678, 1.0) for n in range(1, 5))
    metric = Metric("accuracy_macro", 12.345678, 4, "ratio", cells, share=False)

    def in_pixels(scored: Scored) -> Scored:
        by_rule = {rule: Counted(value.scores, (metric,)) for rule, value in scored.counted.items()}
        return replace(scored, counted=by_rule)

    (table,) = headline_tables(compare([in_pixels(solver("a", {"Jigsaw": "rrrw"}))]))
    assert table.rows[0][1] == "12.35"


@pytest.mark.parametrize(
    ("missing", "word", "answered"),
    [
        (0, "14r 6w", "20/20"),
        (3, "14r 6w", "20 of 23 questions"),
        (3, "14r 4w 2u", "18 of 23 questions, 20 predicted"),
    ],
)
def test_predictions_of_a_part_say_of_how_many_questions(missing: int, word: str, answered: str) -> None:
    class Origin:
        """The object from which the number of questions without a prediction is read."""

        def __init__(self) -> None:
            self.missing = [f"q{n}" for n in range(missing)]

    scored = solver("a", {"Jigsaw": letters(word)}, origin=Origin())
    (table,) = headline_tables(compare([scored]))
    assert table.rows[0][3] == answered


def test_the_rule_is_named_where_an_answer_is_missing_and_nothing_failed() -> None:
    def line(first: str, second: str, rule: Any = "wrong") -> str:
        words = {"a": first, "b": second}
        return rule_line([solver(name, {"Jigsaw": word}, unanswered=rule) for name, word in words.items()])

    assert line("rrw", "rwf") == ""
    assert line("rrw", "rwa") == (
        f"Unanswered questions count {COUNTED['wrong']} in every number here (--unanswered guess: {COUNTED['guess']})."
    )
    assert line("rau", "rwf", rule="guess") == (
        f"Unanswered questions count {COUNTED['guess']} in every number here (--unanswered wrong: {COUNTED['wrong']})."
    )
