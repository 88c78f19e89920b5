"""The sections that `hybrid compare` prints: their order, a selection, a section that fails, and a user's own."""

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid import compare
from hybrid.core.errors import DataError, UsageError
from hybrid.plugins.discovery import folders, look_in
from hybrid.report.collect import collect_paths
from hybrid.scoring import sections as package
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_rows import SECTIONS as CONCLUDED
from hybrid.scoring.headline import MORE
from hybrid.scoring.headline import SECTIONS as SHOWN
from hybrid.scoring.reports import ComparisonReport, compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections import gain

SECTIONS = package.__name__


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory, synthetic_runs: Any) -> tuple[Path, ...]:
    """A real run and its controls."""
    result: tuple[Path, ...] = synthetic_runs.write(tmp_path_factory.mktemp("runs"), "blink", size=5).paths
    return result


@pytest.fixture(scope="module")
def full_report(paths: tuple[Path, ...]) -> ComparisonReport:
    """The comparison of a real run and its controls, with all sections."""
    return compare_paths(paths, all=True)


def test_json_has_every_row_and_every_conclusion(full_report: ComparisonReport) -> None:
    report = full_report
    data: Any = json.loads(json.dumps(report.as_json()))
    assert set(data) == {"head", "unanswered", "solvers", "results", "conclusion", "conclusions"}
    assert [(item["id"], item["text"]) for item in data["conclusion"]] == [
        (entry.id, entry.text) for entry in report.conclusion
    ]
    assert len(data["results"]) == len(report.results) == len(report.rows())
    assert data["conclusions"] == {section.name: section.lead for section in report.sections if section.lead}


@pytest.mark.system
def test_only_what_was_asked_for(paths: tuple[Path, ...]) -> None:
    report = compare(*paths, only=["gain", "metrics"])
    assert [block.name for block in report.blocks()] == ["metrics", "gain"]
    assert set(report.comparison.computed) == {"gain", "metrics", "differences", "helped", "answered"}, (
        "what the words of gain read, and no more"
    )
    assert "Outcomes" not in report.render()
    for name, text in (
        ("gains", r"unknown section \(did you mean 'gain'\?\)"),
        ("published", r"unknown section \(did you mean 'used'\?\)"),
    ):
        with pytest.raises(UsageError, match=f"--only {name}: {text}; it has: metrics, differences, answered, tasks,"):
            compare(paths[0], only=[name]).render()
    with pytest.raises(UsageError, match="--only gain: this comparison has no such section"):
        compare(paths[0], only=["gain"]).render()


@pytest.mark.system
def test_the_answer_comes_first_and_the_rest_on_request(paths: tuple[Path, ...]) -> None:
    report = compare(*paths)
    text = report.render()
    assert [table.names[0] for table in report.tables()] == ["solver", "task"]
    places = [text.index(item.text[:40]) for item in report.conclusion]
    assert places == sorted(places)
    assert places[-1] < text.index("blink: accuracy_macro") < text.index("\ntask ")
    assert max(map(len, text.splitlines())) <= 80
    assert text.endswith(f"{MORE}\n")
    # A section that is not printed is not computed.
    assert set(report.comparison.computed) == {*CONCLUDED, *SHOWN}
    assert "More:" not in compare(*paths, all=True).render()
    with pytest.raises(UsageError, match="only= and all"):
        compare(*paths, only=["gain"], all=True)


@pytest.mark.parametrize("margin", [0, 1, -0.1, float("nan")])
def test_a_margin_is_a_difference_in_accuracy(paths: tuple[Path, ...], margin: float) -> None:
    assert compare(*paths).options.margin == 0.05
    assert compare(*paths, margin=0.1).options.margin == 0.1
    with pytest.raises(UsageError, match=r"margin=.*: a difference in accuracy"):
        compare(*paths, margin=margin)


def raising(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def rows(comparison: Comparison) -> Iterator[Result]:
        raise error

    monkeypatch.setattr(gain, "SECTION", replace(gain.SECTION, rows=rows))


@pytest.mark.parametrize(
    "error",
    [
        DataError("controller/traces/val_Jigsaw_1.json: cut off"),
        pytest.param(OSError(5, "Input/output error"), marks=pytest.mark.system),
        pytest.param(ValueError("Expecting value:\n line 1"), marks=pytest.mark.system),
    ],
)
def test_a_section_that_cannot_be_made_costs_no_other(
    paths: tuple[Path, ...], full_report: ComparisonReport, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    names = {section.name for section in full_report.sections}
    raising(monkeypatch, error)
    report = compare_paths(paths, all=True)
    reason = " ".join(str(error).split())
    data: Any = report.as_json()
    assert data["faults"] == {"gain": reason}
    assert {row["section"] for row in data["results"]} == names - {"gain"}
    text = report.render()
    assert "This section could not be made" in text
    assert reason in text
    assert report.failed == (f"gain: {reason}",)
    assert "gain" not in {line["section"] for line in csv.DictReader(io.StringIO(report.render("csv")))}
    assert f"warning: gain could not be made: {reason}" in compare_paths(paths).render()


def test_a_bug_is_not_taken_for_a_damaged_trace(paths: tuple[Path, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    raising(monkeypatch, KeyError("a"))
    with pytest.raises(KeyError):
        compare_paths(paths).render()


def test_without_solvers_there_is_nothing() -> None:
    report = ComparisonReport(())
    assert (report.tables(), report.sections, report.render(), report.failed) == ((), (), "", ())


def test_where_nothing_was_answered_one_statement_stands_instead(tmp_path: Path, synthetic_runs: Any) -> None:
    path = synthetic_runs.from_letters(tmp_path / "run", {"mllm": {"Jigsaw": "fff"}}).path
    text = compare_paths([path]).render()
    assert text.partition("\n")[2].startswith("Nothing was answered by mllm: 3 questions failed, 0 were not asked.\n")
    assert "The reason of 3: the model did not answer" in text
    assert text.endswith("Fix that, then ask again as before.\n")


def test_a_question_that_several_solvers_failed_is_one_question(tmp_path: Path, synthetic_runs: Any) -> None:
    both = {"mllm": {"Jigsaw": "fff"}, "controller": {"Jigsaw": "fff"}}
    text = compare_paths([synthetic_runs.from_letters(tmp_path / "run", both).path]).render()
    assert "Nothing was answered by mllm, controller: 3 questions failed, 0 were not asked.\n" in text
    other = synthetic_runs.from_letters(tmp_path / "other", {"specialist": {"Jigsaw": "f"}}).path
    text = compare_paths([tmp_path / "run", other]).render()
    both_failed = "mllm, controller: 3 questions failed, 0 were not asked."
    counts = f"{both_failed} specialist: 1 question failed, 0 were not asked."
    assert f"Nothing was answered by mllm, controller, specialist. {counts}\n" in text


def test_differences_on_fewer_questions_than_the_values_beside_them_are_noted(
    tmp_path: Path, synthetic_runs: Any
) -> None:
    answers = {"controller": {"Jigsaw": "ffrrrr" * 5}, "mllm": {"Jigsaw": "rrwwrr" * 5}}
    text = compare_paths([synthetic_runs.from_letters(tmp_path / "run", answers).path], allow_failed=True).render()
    assert "+0.500" in text
    note = "Differences cover only questions that both solvers have and neither failed (controller: 20)."
    assert note in " ".join(text.split())
    full = {name: {"Jigsaw": values["Jigsaw"].replace("f", "w")} for name, values in answers.items()}
    text = compare_paths([synthetic_runs.from_letters(tmp_path / "full", full).path]).render()
    assert "Differences cover" not in text


@pytest.mark.system
def test_published_rows_come_last_under_a_heading_of_their_own(paths: tuple[Path, ...]) -> None:
    report = compare(*paths, published=True)
    last = report.blocks()[-1]
    assert last.heading == "What do papers report for the same metrics?"
    assert last.tables[0].notes[0].startswith("As printed: percent, unless a note says fraction.")
    # Only published cells on the same split are printed, for metrics and tasks in this comparison.
    assert {name for table in last.tables for name in table.names[1:]} == {
        *("accuracy_macro", "Counting", "Jigsaw", "Relative_Depth")
    }
    assert all("(val)" in table.title for table in last.tables)
    assert "published" not in {block.name for block in compare(*paths).blocks()}


def test_generated_questions_have_no_published_numbers(paths: tuple[Path, ...]) -> None:
    report = compare(*paths, published=True)
    data = replace(report.solvers[0].data, facts={"kind": "sample", "seed": 0})
    generated = replace(report, solvers=tuple(replace(solver, data=data) for solver in report.solvers))
    with pytest.raises(UsageError, match="the questions were generated"):
        generated.render()


# A user's own statistic.

OWN = '''
"""How many words a solver's answers have."""
from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.result import QUESTIONS, Result, Section


def rows(found):
    for solver in found.solvers:
        answered = sum(score.answer is not None for score in solver.scores)
        yield Result("readable", "answers read", QUESTIONS, float(answered), solver.solver, n=len(solver.scores))


SECTION = Section(
    "readable",
    "How many answers can be read?",
    (MetricCard("answers read", "questions with a readable answer", "questions", "by hand", values="0 to n"),),
    rows,
    lambda found, made: f"{made[0].a} has {made[0].value:.0f} readable answers.",
    about="An answer is read where a parser finds one.",
    headings={"a": "solver"},
    chart="counts",
)
'''


@pytest.fixture
def custom_statistic(tmp_path: Path) -> Iterator[None]:
    """A statistic of the user's own, in a folder next to the program's."""
    folder, previous = tmp_path / "statistics", folders(SECTIONS)
    folder.mkdir()
    (folder / "readable.py").write_text(OWN)
    look_in(SECTIONS, (*previous, str(folder)))
    yield
    look_in(SECTIONS, previous)


@pytest.mark.system
def test_a_statistic_is_one_file_and_in_every_form(
    custom_statistic: None, paths: tuple[Path, ...], reference: Any
) -> None:
    del custom_statistic
    report = compare_paths(paths, all=True)
    title, lead, about = (
        *("How many answers can be read?", "controller has 15 readable answers."),
        "An answer is read where a parser finds one.",
    )
    for text in (report.render(), report.render("markdown")):
        assert [text.count(words) for words in (title, lead, about)] == [1, 1, 1]
    data: Any = report.as_json()
    rows = [row for row in data["results"] if row["section"] == "readable"]
    assert [row["a"] for row in rows] == [solver.solver for solver in report.solvers]
    assert (rows[0]["quantity"], rows[0]["value"], rows[0]["n"]) == ("answers read", 15, 15)
    assert data["conclusions"]["readable"] == lead
    lines = [line for line in csv.DictReader(io.StringIO(report.render("csv"))) if line["section"] == "readable"]
    assert {line["unanswered"] for line in lines} == {"wrong"}
    assert [line["value"] for line in lines] == [str(int(row["value"])) for row in rows]
    ((benchmark),) = collect_paths(paths).benchmarks
    (section,) = [item for item in benchmark.overview.sections if item.id == "readable"]
    assert (section.title, section.lead) == (title, lead)
    assert about in section.tables[0].notes
    assert [(dot.a, dot.value) for dot in section.charts[0].rows] == [(row["a"], row["value"]) for row in rows]
    (page,) = reference.pages()
    own_part = page.text[page.text.index("{ #compare-readable }") :]
    assert f": {title} {{ #compare-readable }}" in page.text
    assert about in own_part
    assert "questions with a readable answer" in own_part


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module that writes the reference page with every quantity."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "docs"))
    from _reference import metrics

    return metrics
