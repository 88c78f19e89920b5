"""The tables of an ablation compared with numbers computed by hand, its claims, and the names of runs."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import UsageError
from hybrid.core.types import Usage
from hybrid.log.folder import RunFolder
from hybrid.running.ablation import ablation
from hybrid.scoring.ablation import AblatedRun, AblationReport, ablation_at
from hybrid.scoring.compare import unique
from hybrid.scoring.rendering import COLUMNS
from hybrid.scoring.result import Result
from hybrid.scoring.tools_offered import tools_words
from tests.hybrid.scoring.solvers import folder_of, solver
from tests.tables import stored

TOOLS_OFFERED = ("depth", "crop", "ocr")


ANSWERS = stored(__file__, "ANSWERS")


def report(*without: str, add_one: bool = True, **usage: Any) -> AblationReport:
    runs = []
    for place, variant in enumerate(ablation(TOOLS_OFFERED, add_one=add_one).runs):
        if variant.name not in without:
            used = Usage(model_calls=60, tool_calls=10 * place, input_tokens=1000, output_tokens=place, **usage)
            runs.append(
                AblatedRun(variant, solver("controller", ANSWERS[variant.name], solver=variant.about, usage=used))
            )
    return AblationReport(Path("out"), "controller", tuple(runs))


def values(
    result: AblationReport, place: int, section: str, quantity: str, metric: str = ""
) -> dict[str, float | None]:
    """Return, by run, the numbers over all tasks of one of the comparisons."""
    return {row.b or row.a: row.value for row in rows(result, place, section, quantity, metric)}


def rows(result: AblationReport, place: int, section: str, quantity: str, metric: str = "") -> list[Result]:
    return [
        row
        for row in result.comparisons[place].results
        if (row.section, row.quantity, row.metric, row.group) == (section, quantity, metric, "")
        and row.none in ("", "guess")
    ]


def test_the_table_by_hand() -> None:
    """The values equal a computation by hand: macro accuracy is the mean over Jigsaw (40 questions) and Counting (20
    questions)."""
    data = report()
    macro = {"full": 0.625, "no tool": 0.25, "without depth": 0.25, "without crop": 0.6, "without ocr": 0.65}
    assert values(data, 0, "metrics", "value", "accuracy_macro") == pytest.approx(macro)
    changes = {name: value - macro["full"] for name, value in macro.items() if name != "full"}
    assert values(data, 0, "differences", "difference", "accuracy_macro") == pytest.approx(changes)
    assert values(data, 0, "outcomes", "tool calls") == dict(zip(macro, (0, 10, 20, 30, 40), strict=True))
    alone = {"only depth": 0.35, "only crop": 0.0, "only ocr": 0.025}
    assert values(data, 1, "differences", "difference", "accuracy_macro") == pytest.approx(alone)
    titles = [table.title for table in data.tables()]
    assert titles == [
        title
        for name in ("full", "no tool")
        for title in (f"blink: accuracy_macro, differences to {name}", "blink: accuracy by task")
    ]
    assert data.tables()[0].notes[: len(data.conclusion())] == data.conclusion()


def test_how_small_a_difference_could_be_is_half_of_the_intervals() -> None:
    data = report("without-depth", "without-crop", add_one=False)
    (line,) = [line for line in data.conclusion() if line.startswith("No single tool's absence")]
    (row,) = [item for item in rows(data, 0, "differences", "difference", "accuracy_macro") if item.b == "without ocr"]
    assert row.low is not None
    assert row.high is not None
    # With two tests the smaller p must be below 0.025: 2.2414 standard errors instead of 1.9600.
    half = (row.high - row.low) / 2 * 2.2414 / 1.96
    assert f"Adjusted for 2 tests, a difference of about {half:.3f} or more would have been shown." in line
    assert any("--add-one asks with each tool alone" in line for line in data.conclusion())


def test_a_run_that_is_not_there_leaves_the_others() -> None:
    data = report("none", "without-crop", "only-depth", "only-crop", "only-ocr")
    assert list(values(data, 0, "metrics", "value", "accuracy_macro")) == ["full", "without depth", "without ocr"]
    assert data.against_none is None
    alone = AblationReport(Path("out"), "controller", data.runs[:1])
    assert values(alone, 0, "metrics", "value", "accuracy_macro") == {"full": pytest.approx(0.625)}
    assert alone.conclusion() == ()
    assert alone.metric == "accuracy_macro"


def test_one_number_a_line_in_csv() -> None:
    data = report(cost_usd=0.25)
    lines = list(csv.DictReader(io.StringIO(data.render("csv"))))
    # The columns of `hybrid compare --csv`, so that both files can be concatenated.
    assert tuple(lines[0]) == COLUMNS
    assert {line["benchmark"] for line in lines} == {"blink"}
    (headline,) = [
        line
        for line in lines
        if (line["quantity"], line["a"], line["b"], line["metric"])
        == ("difference", "full", "without depth", "accuracy_macro")
    ]
    assert (float(headline["value"]), headline["n"]) == (-0.375, "60")
    harmed = {(line["b"], line["group"]): line for line in lines if line["quantity"] == "harmed"}
    jigsaw = harmed["without depth", "Jigsaw"]
    assert (jigsaw["value"], jigsaw["unit"]) == ("30", "questions")
    # The run without tools is in both comparisons, but is listed once here.
    cost = [(line["a"], line["value"]) for line in lines if line["quantity"] == "cost"]
    assert sorted(cost) == sorted((run.scored.solver, "0.25") for run in data.runs)
    # Every task of every pair is listed, including those without a change.
    differences = [line for line in lines if line["quantity"] == "difference"]
    assert len(differences) == (4 + 3) * (2 + 2)


def test_a_sentence_and_its_table_have_one_adjusted_p_value() -> None:
    data = report()
    for place, comparison in enumerate(data.comparisons):
        reference = comparison.comparison.solvers[0].solver
        of_tables = {row.b: row.p_holm for row in rows(data, place, "differences", "difference", data.metric)}
        assert {row.b: row.p_holm for row in data._differences(reference)} == of_tables
        assert len(of_tables) > 1
        assert None not in of_tables.values()


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_form_begins_with_the_head(form: str) -> None:
    start = {"text": "", "markdown": "", "latex": "% "}[form]
    assert report().render(form).startswith(f"{start}no model | BLINK val | 60 questions | date not recorded\n")


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_form_holds_every_run(form: str) -> None:
    text = report().render(form)
    assert all(run.scored.solver in text for run in report().runs)


# Names of runs in a comparison.


def menu(path: Path, tools_offered: Sequence[str]) -> RunFolder:
    """Return a run that consists only of a manifest."""
    return folder_of(path, (), {}, tools_offered=[*tools_offered])


def test_menus_that_differ_are_in_the_names(tmp_path: Path) -> None:
    tools_offered_by = {"full": TOOLS_OFFERED, "none": (), "a": ("crop", "ocr"), "b": ("ocr",)}
    scored = [
        solver("controller", ANSWERS["full"], folder=menu(tmp_path / name, tools_offered))
        for name, tools_offered in tools_offered_by.items()
    ]
    assert tools_words(scored) == [(), ("no tools",), ("without depth",), ("only ocr",)]
    assert [item.solver for item in unique(scored, list(tools_offered_by))] == [
        "controller",
        "controller [no tools]",
        "controller [without depth]",
        "controller [only ocr]",
    ]
    # Runs with the same menu are distinguished by their given names.
    same = [entry.solver for entry in unique([scored[0], scored[0]], ["a", "b"])]
    assert same == ["controller (a)", "controller (b)"]


def test_what_is_no_ablation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="contains no ablation: it has no run"):
        ablation_at(tmp_path)
    menu(tmp_path / "full", ())
    with pytest.raises(UsageError, match="has answers of no solver that offers tools: give --solver"):
        ablation_at(tmp_path)
    with pytest.raises(UsageError, match="no tool is offered"):
        ablation_at(tmp_path, "controller")
