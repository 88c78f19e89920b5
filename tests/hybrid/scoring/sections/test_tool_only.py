"""Questions solved only with tools, compared with all settings without tools together, and with luck."""

import random
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from hybrid.core.types import Question, Reply
from hybrid.log.folder import RunFolder
from hybrid.scoring.compare import compare
from hybrid.scoring.reports import compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections.tool_only import SECTION
from hybrid.stats import ends_of, wilson
from tests.hybrid.scoring.sections.rows import by_quantity


def compute_section(folder: Path, synthetic_runs: Any, messages: Mapping[str, str]) -> tuple[dict[str, Result], str]:
    """Return the rows over all tasks of a run with these answers to one task, and the conclusion."""
    synthetic_runs.from_letters(folder, {name: {"Jigsaw": letters} for name, letters in messages.items()})
    comparison = compare(compare_paths([folder]).solvers)
    rows = tuple(SECTION.rows(comparison))
    return by_quantity(rows), SECTION.lead(comparison, rows) if rows else ""


def test_where_nothing_is_solved_there_is_no_share(tmp_path: Path, synthetic_runs: Any) -> None:
    rows, lead = compute_section(tmp_path / "run", synthetic_runs, {"controller": "ww", "mllm": "rw"})
    assert "solved without tools too" not in rows
    assert (rows["tool-only lost"].value, lead) == (1.0, "")


def test_a_share_of_0_is_printed(tmp_path: Path, synthetic_runs: Any) -> None:
    _, lead = compute_section(tmp_path / "run", synthetic_runs, {"controller": "rrw", "mllm": "www"})
    assert lead.startswith("controller: 0 % of the 2 questions solved with tools are solved without too, 2 only with")


def test_without_a_model_alone_nothing_is_told(tmp_path: Path, synthetic_runs: Any) -> None:
    assert compute_section(tmp_path / "run", synthetic_runs, {"controller": "rw"}) == ({}, "")


@pytest.mark.parametrize("runs", [2, 3])
def test_what_only_tools_solve_is_counted_question_by_question(runs: int, tmp_path: Path, synthetic_runs: Any) -> None:
    rng = random.Random(runs)
    tools, *without = ("".join(rng.choices("rw", k=30)) for _ in range(1 + runs))
    messages = {"controller": tools, **dict(zip(("mllm", "mllm@2", "mllm@3"), without, strict=False))}
    rows, lead = compute_section(tmp_path / "run", synthetic_runs, messages)
    questions = list(zip(tools, *without, strict=True))
    solved = [n for n, (tool, *alone) in enumerate(questions, 1) if tool == "r" and "r" not in alone]
    lost_numbers = [n for n, (tool, *alone) in enumerate(questions, 1) if tool == "w" and "r" in alone]
    assert rows["tool-only solved"].ids == tuple(f"val_Jigsaw_{n}" for n in solved)
    assert {(row.a, row.b) for row in rows.values()} == {("mllm", "controller")}
    assert rows["tool-only lost"].ids == tuple(f"val_Jigsaw_{n}" for n in lost_numbers)
    assert (rows["tool-only solved"].value, rows["tool-only lost"].value) == (len(solved), len(lost_numbers))
    # With one more run without tools, each such run in turn is compared with the others.
    alone = list(zip(*without, strict=True))
    new = [sum(a[k] == "r" and "r" not in a[:k] + a[k + 1 :] for a in alone) for k in range(runs)]
    missed = [sum(a[k] == "w" and "r" in a[:k] + a[k + 1 :] for a in alone) for k in range(runs)]
    assert rows["by luck"].value == pytest.approx(fmean(new))
    assert rows["lost by luck"].value == pytest.approx(fmean(missed))
    right, too = tools.count("r"), tools.count("r") - len(solved)
    share = rows["solved without tools too"]
    assert share.value == pytest.approx(too / right)
    assert share.n == right
    assert (share.low, share.high) == ends_of(wilson(too, right))
    assert f"{100 * too / right:.0f} % of the {right} questions solved with tools are solved without too" in lead
    assert f"{len(solved)} only with tools, by luck {fmean(new):.1f}." in lead


@pytest.mark.parametrize(("temperature", "is_drawn"), [(None, True), (0.7, True), (0, False)])
def test_one_run_has_a_bound_of_luck_if_its_answers_are_drawn(
    temperature: float | None, is_drawn: bool, tmp_path: Path, synthetic_runs: Any
) -> None:
    letters = {"controller": {"Jigsaw": "r" * 10}, "mllm": {"Jigsaw": "r" * 3 + "w" * 7}}
    folder: RunFolder = synthetic_runs.from_letters(tmp_path / "run", letters)
    model = {**folder.manifest["identity"]["model"], "options": {"temperature": temperature}}
    folder.write_manifest({**folder.manifest, "identity": {**folder.manifest["identity"], "model": model}})
    comparison = compare(compare_paths([tmp_path / "run"]).solvers)
    section = tuple(SECTION.rows(comparison))
    rows = by_quantity(section)
    at_most = {name: row.value for name, row in rows.items() if "at most" in name}
    bound = pytest.approx(10 * 0.3 * 0.7)
    assert list(rows)[:2] == ["tool-only solved", "by luck at most" if is_drawn else "tool-only lost"]
    assert at_most == ({"by luck at most": bound, "lost by luck at most": bound} if is_drawn else {})
    assert ("repeats=3" in rows["tool-only solved"].note) is is_drawn
    lead = SECTION.lead(comparison, section)
    assert lead.endswith("only with tools, by luck at most 2.1." if is_drawn else "7 only with tools.")
    assert not {"by luck", "lost by luck"} & set(rows)


@pytest.mark.parametrize(
    ("model", "imported", "can_repeat"),
    [
        ("made:one", {}, True),
        ("replay:made", {}, False),
        # The answers without tools come from another program.
        ("made:one", {"imported": {"name": "made:one"}}, False),
    ],
)
def test_repetitions_are_recommended_only_if_the_model_can_be_asked_again(
    model: str, imported: dict[str, Any], can_repeat: bool, tmp_path: Path, synthetic_runs: Any
) -> None:
    folders = {"controller": "r" * 10, "mllm": "r" * 3 + "w" * 7}
    for name, words in folders.items():
        run: RunFolder = synthetic_runs.from_letters(tmp_path / name, {name: {"Jigsaw": words}})
        identity = {**run.manifest["identity"], "model": {"model": model}, **(imported if name == "mllm" else {})}
        run.write_manifest({**run.manifest, "identity": identity})
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths([tmp_path / name for name in folders]).solvers))))
    assert rows["by luck at most"].value == pytest.approx(10 * 0.3 * 0.7)
    note = rows["by luck at most"].note
    assert "asked once and drawn" in note
    assert ("repeats=3" in note) is can_repeat


def test_the_share_of_a_mean_over_repetitions_has_no_interval_of_counts(tmp_path: Path, synthetic_runs: Any) -> None:
    messages = {"controller": "rrrrrwww" * 4, "controller@2": "rrwwrrww" * 4, "mllm": "rwrwwwrw" * 4}
    rows, lead = compute_section(tmp_path / "run", synthetic_runs, messages)
    tools = [fmean(letter == "r" for letter in pair) for pair in zip(*list(messages.values())[:2], strict=True)]
    too = sum(tool * (letter == "r") for tool, letter in zip(tools, messages["mllm"], strict=True))
    share = rows["solved without tools too"]
    assert share.value == pytest.approx(too / sum(tools))
    assert (share.low, share.high) != ends_of(wilson(round(too), sum(tool > 0 for tool in tools)))
    assert rows["tool-only solved"].value == pytest.approx(sum(tools) - too)
    # Of 18 right answers on average, 6 are right without tools, too; the model alone is right on 12 of 32.
    assert lead == (
        "controller: 33 % of the questions solved with tools are solved without too, 12.0 only with tools (mean over "
        "repetitions), by luck at most 7.5."
    )


def test_a_model_that_answers_nothing_is_no_setting_without_tools(tmp_path: Path, synthetic_runs: Any) -> None:
    rows, _ = compute_section(tmp_path / "run", synthetic_runs, {"controller": "rw", "mllm": "uu"})
    assert rows == {}


@pytest.mark.parametrize(
    ("messages", "rounded"),
    [
        # In the first row, every second question is right in half of the runs with tools and never without. In the
        # second row, every second question is always right with tools, and a guess without.
        ({"controller": "rr" * 10, "controller@2": "rw" * 10, "mllm": "rw" * 10}, 10),
        ({"controller": "rr" * 10, "mllm": "ru" * 10}, 15),
    ],
)
def test_halves_are_no_counts_for_wilson(
    messages: dict[str, str], rounded: int, tmp_path: Path, synthetic_runs: Any
) -> None:
    letters = {name: {"Jigsaw": value} for name, value in messages.items()}
    synthetic_runs.from_letters(tmp_path / "run", letters)
    solvers = [scored.under("guess") for scored in compare_paths([tmp_path / "run"]).solvers]
    share = by_quantity(tuple(SECTION.rows(compare(solvers))))["solved without tools too"]
    assert share.low is not None
    assert (share.low, share.high) != ends_of(wilson(rounded, 20))


def test_another_model_is_no_setting_without_tools(tmp_path: Path, synthetic_runs: Any) -> None:
    synthetic_runs.from_letters(tmp_path / "run", {"controller": {"Jigsaw": "r" * 10}, "mllm": {"Jigsaw": "w" * 10}})
    other: RunFolder = synthetic_runs.from_letters(tmp_path / "other", {"mllm": {"Jigsaw": "r" * 10}})
    identity = {**other.manifest["identity"], "model": {"model": "made:other"}}
    other.write_manifest({**other.manifest, "identity": identity})
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths([tmp_path / "run", tmp_path / "other"]).solvers))))
    assert rows["tool-only solved"].value == 10


def test_the_sentence_is_of_all_tasks_and_not_of_the_last(tmp_path: Path, synthetic_runs: Any) -> None:
    letters = {"controller": {"Counting": "rrrr", "Jigsaw": "rrww"}, "mllm": {"Counting": "rrrw", "Jigsaw": "wwww"}}
    synthetic_runs.from_letters(tmp_path / "run", letters)
    comparison = compare(compare_paths([tmp_path / "run"]).solvers)
    rows = tuple(SECTION.rows(comparison))
    assert {row.group for row in rows} == {"", "Counting", "Jigsaw"}
    lead = SECTION.lead(comparison, rows)
    assert "50 % of the 6 questions solved with tools are solved without too, 3 only with tools" in lead


@pytest.mark.parametrize("order", [("text_only", "mllm", "mllm@2"), ("mllm", "mllm@2", "text_only")])
def test_luck_is_of_repetitions_of_the_plain_setting_wherever_it_stands(
    order: tuple[str, ...], tmp_path: Path, synthetic_runs: Any
) -> None:
    without = {"text_only": "wwwrrr", "mllm": "rwwwrw", "mllm@2": "wrwwrw"}
    messages = {"controller": "rwrwrw", **{name: without[name] for name in order}}
    rows, _ = compute_section(tmp_path / "run", synthetic_runs, messages)
    assert {(row.a, row.b) for row in rows.values()} == {("mllm", "controller")}
    assert rows["tool-only solved"].ids == ("val_Jigsaw_3",)
    assert rows["tool-only lost"].ids == ("val_Jigsaw_2", "val_Jigsaw_4", "val_Jigsaw_6")
    # Each repetition of `mllm` solves one question that no other setting without tools solves; `text_only` solves two
    # such questions.
    assert (rows["by luck"].value, rows["lost by luck"].value) == (1, 3)
    assert "repeats=3" not in rows["tool-only solved"].note, "repetitions measure it"


@pytest.mark.parametrize(("temperatures", "is_drawn"), [((0.7, 0), True), ((0, 0.7), False)])
def test_whether_answers_are_drawn_is_asked_of_the_plain_setting(
    temperatures: tuple[float, float], is_drawn: bool, tmp_path: Path, synthetic_runs: Any
) -> None:
    letters = ({"controller": "rrrr", "mllm": "rrww"}, {"text_only": "rwww"})
    folders = []
    for name, words, temperature in zip(("own", "text"), letters, temperatures, strict=True):
        run: RunFolder = synthetic_runs.from_letters(tmp_path / name, {key: {"Jigsaw": w} for key, w in words.items()})
        model = {**run.manifest["identity"]["model"], "options": {"temperature": temperature}}
        run.write_manifest({**run.manifest, "identity": {**run.manifest["identity"], "model": model}})
        folders.append(tmp_path / name)
    rows = by_quantity(tuple(SECTION.rows(compare(compare_paths(folders).solvers))))
    assert {row.a for row in rows.values()} == {"mllm"}
    # The accuracy of the plain setting is 0.5, and that of the other 0.25.
    assert rows.get("by luck at most", rows["tool-only lost"]).value == (4 * 0.5 * 0.5 if is_drawn else 0)


def test_without_a_question_that_nobody_failed_there_is_no_row(tmp_path: Path, synthetic_runs: Any) -> None:
    rows, lead = compute_section(tmp_path / "run", synthetic_runs, {"controller": "rf", "mllm": "fr"})
    assert (rows, lead) == ({}, "")


def test_questions_of_one_picture_are_not_independent(tmp_path: Path, synthetic_runs: Any) -> None:
    questions = list(synthetic_runs.QUESTIONS_OF["mvp_bench"](10))
    # Without tools, all four questions of a pair are right, or none.
    wrong = {question.id for question in questions if int(question.groups["pair"]) % 2}

    def ask(question: Question) -> Reply:
        return Reply(f"Answer: {question.target}")

    def ask_alone(question: Question) -> Reply:
        other = {"yes": "no", "no": "yes"}[str(question.target)]
        return Reply(f"Answer: {other if question.id in wrong else question.target}")

    synthetic_runs.write_run(tmp_path / "run", "mvp_bench", questions, {"controller": ask, "mllm": ask_alone})
    comparison = compare(compare_paths([tmp_path / "run"]).solvers)
    share = by_quantity(tuple(SECTION.rows(comparison)))["solved without tools too"]
    narrow_low, narrow_high = ends_of(wilson(20, 40))
    assert narrow_low is not None
    assert narrow_high is not None
    assert (share.value, share.n) == (0.5, 40)
    assert share.low is not None
    assert share.high is not None
    assert share.low < narrow_low - 0.05, "ten pairs say less than forty questions"
    assert share.high > narrow_high + 0.05


def test_each_model_has_its_own_counts_in_the_sentence(tmp_path: Path, synthetic_runs: Any) -> None:
    for name, alone in (("one", "rrww"), ("other", "rwww")):
        letters = {"controller": {"Jigsaw": "rrrr"}, "mllm": {"Jigsaw": alone}}
        run: RunFolder = synthetic_runs.from_letters(tmp_path / name, letters)
        run.write_manifest(
            {**run.manifest, "identity": {**run.manifest["identity"], "model": {"model": f"made:{name}"}}}
        )
    comparison = compare(compare_paths([tmp_path / "one", tmp_path / "other"]).solvers)
    lead = SECTION.lead(comparison, tuple(SECTION.rows(comparison)))
    assert lead.index("50 % of the 4 questions") < lead.index("25 % of the 4 questions")
