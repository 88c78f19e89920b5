"""The tables of an ablation against numbers made by hand, what its sentences claim, and what runs are called by."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hybrid.scoring.tidy import COLUMNS

from hybrid.errors import UsageError
from hybrid.registry import load
from hybrid.run_folder import RunFolder
from hybrid.running.ablation import ablation
from hybrid.scoring.ablation import AblatedRun, AblationReport, ablation_at
from hybrid.scoring.compare import unique
from hybrid.scoring.menus import menu_words
from hybrid.scoring.pairing import Data
from hybrid.scoring.score import Counted, Scored, metrics_of
from hybrid.stats import contrast, holm
from hybrid.types import Kind, Outcome, Question, Score, StoredImage, Usage

VAL = Data("blink", "val", {"kind": "folder", "sha256": "a" * 64}, {})
MENU = ("depth", "crop", "ocr")


def solver(said: Mapping[str, str], **changes: Any) -> Scored:
    """A controller from a word of `r` and `w` for each task."""
    rows = [(f"{task}_{n}", task, letter) for task, word in said.items() for n, letter in enumerate(word, 1)]
    questions = {
        identity: Question(
            identity, task, (StoredImage(identity.encode().hex().zfill(64), 4, 4, "image/png"),),
            "Which?", Kind.CHOICE, ("x", "y"), "(A)",
        )
        for identity, task, _ in rows
    }  # fmt: skip
    scores = tuple(
        Score(identity, task, float(letter == "r"), Outcome.ANSWERED, "A" if letter == "r" else "B")
        for identity, task, letter in rows
    )
    counted = Counted(scores, metrics_of(load("hybrid.benchmarks", "blink"), questions, scores))
    both = {"chance": counted, "wrong": counted}
    return replace(Scored("blink", "controller", both, "chance", questions, VAL, recorded="controller"), **changes)  # type: ignore[arg-type]


ANSWERS = {
    "full": {"Jigsaw": "r" * 30 + "w" * 10, "Counting": "r" * 10 + "w" * 10},
    "none": {"Jigsaw": "w" * 40, "Counting": "r" * 10 + "w" * 10},
    "without-depth": {"Jigsaw": "w" * 30 + "w" * 10, "Counting": "r" * 10 + "w" * 10},
    "without-crop": {"Jigsaw": "r" * 30 + "w" * 10, "Counting": "r" * 9 + "w" * 11},
    "without-ocr": {"Jigsaw": "r" * 32 + "w" * 8, "Counting": "r" * 10 + "w" * 10},
    "only-depth": {"Jigsaw": "r" * 28 + "w" * 12, "Counting": "r" * 10 + "w" * 10},
    "only-crop": {"Jigsaw": "w" * 40, "Counting": "r" * 10 + "w" * 10},
    "only-ocr": {"Jigsaw": "rr" + "w" * 38, "Counting": "r" * 10 + "w" * 10},
}


def report(*without: str, add_one: bool = True, **usage: Any) -> AblationReport:
    runs = []
    for place, variant in enumerate(ablation(MENU, add_one=add_one).variants):
        if variant.name not in without:
            used = Usage(model_calls=60, tool_calls=10 * place, input_tokens=1000, output_tokens=place, **usage)
            runs.append(AblatedRun(variant, solver(ANSWERS[variant.name], solver=variant.words, usage=used)))
    return AblationReport(Path("out"), "controller", tuple(runs))


def rows(found: AblationReport, place: int) -> list[list[str]]:
    return [list(row) for row in found.tables()[place].rows]


def test_the_table_by_hand() -> None:
    """Macro accuracy: the mean of Jigsaw of 40 and Counting of 20."""
    found = report()
    cells = [(row[0], row[1], row[2], row[3], row[6], row[7]) for row in rows(found, 0)]
    assert cells == [
        ("full", "60", "0.625", "-", "0", "1,000"),
        ("no tool", "60", "0.250", "-0.375", "10", "1,001"),
        ("without depth", "60", "0.250", "-0.375", "20", "1,002"),
        ("without crop", "60", "0.600", "-0.025", "30", "1,003"),
        ("without ocr", "60", "0.650", "+0.025", "40", "1,004"),
    ]
    assert [(row[0], row[2], row[3]) for row in rows(found, 1)] == [
        ("no tool", "0.250", "-"),
        ("only depth", "0.600", "+0.350"),
        ("only ocr", "0.275", "+0.025"),
        ("only crop", "0.250", "+0.000"),
    ]


def test_interval_and_p_are_those_of_a_paired_contrast_and_holm_is_over_the_table() -> None:
    found = report()
    told: Any = found.as_json()
    heads = {pair["b"]: pair for pair in told["against_full"] if pair["family"] == "headline"}
    assert list(heads) == ["no tool", "without depth", "without crop", "without ocr"]
    metrics = {
        run.name: next(metric for metric in run.scored.metrics if metric.name == "accuracy_macro") for run in found.runs
    }
    by_hand = {name: contrast(metrics["full"], metrics[name]) for name in heads}
    for name, pair in heads.items():
        interval = by_hand[name].interval
        assert interval is not None
        assert pair["interval"] == [interval.low, interval.high]
    p_values = [by_hand[name].p_value or 0.0 for name in heads]
    assert [pair["p_holm"] for pair in heads.values()] == list(holm(p_values))
    assert {pair["a"] for pair in told["against_none"]} == {"no tool"}
    assert {pair["b"] for pair in told["against_none"]} == {"only depth", "only crop", "only ocr"}


def test_by_task_only_what_changed_is_printed_and_the_rest_is_counted() -> None:
    table = report().tables()[2]
    assert [row[:6] for row in table.rows] == [
        ("Counting", "without crop", "20", "0.500", "0.450", "-0.050"),
        ("Jigsaw", "no tool", "40", "0.750", "0.000", "-0.750"),
        ("Jigsaw", "without depth", "40", "0.750", "0.000", "-0.750"),
        ("Jigsaw", "without ocr", "40", "0.750", "0.800", "+0.050"),
    ]
    assert table.notes[0].startswith("4 of 8 rows are not shown")


def test_what_could_be_shown_is_said_and_what_could_not_be_too() -> None:
    told = report().conclusion()
    assert told[0].startswith("Without any tool accuracy_macro changes by -0.375 (95 % [")
    assert told[1].startswith("Without depth accuracy_macro changes by -0.375 (95 % [")
    assert told[2].startswith(
        "Of the other 2 none changes accuracy_macro measurably on 60 questions: the 95 % intervals"
    )
    assert "--add-one" not in told[3]
    assert told[4].startswith("Against no tool, with depth alone accuracy_macro changes by +0.350")
    assert told[5].startswith("Of the other 2 none changes")
    assert "gives no tool a share" in told[-1]


def test_how_small_a_difference_could_be_is_half_of_the_intervals() -> None:
    found = report("without-depth", "without-crop", add_one=False)
    (line,) = [line for line in found.conclusion() if line.startswith("No single tool's absence")]
    (pair,) = [c for c in found.against_full.family("headline") if c.pair.b == "without ocr"]
    assert pair.contrast.interval is not None
    half = (pair.contrast.interval.high - pair.contrast.interval.low) / 2
    assert f"the 95 % intervals reach {half:.3f} to either side" in line
    assert any("--add-one asks with each tool alone" in line for line in found.conclusion())


def test_a_run_that_is_not_there_leaves_the_others() -> None:
    found = report("none", "without-crop", "only-depth", "only-crop", "only-ocr")
    assert [row[0] for row in rows(found, 0)] == ["full", "without depth", "without ocr"]
    assert found.against_none is None
    alone = AblationReport(Path("out"), "controller", found.runs[:1])
    assert [row[:3] for row in rows(alone, 0)] == [["full", "60", "0.625"]]
    assert alone.conclusion() == ()
    assert alone.metric == "accuracy_macro"


def test_costs_are_printed_where_a_price_was_given() -> None:
    assert report().tables()[0].names[-1] == "tokens"
    priced = report(cost_usd=0.5)
    assert priced.tables()[0].names[-1] == "cost USD"
    assert {row[-1] for row in rows(priced, 0)} == {"0.5000"}


def test_questions_that_are_open_are_told() -> None:
    found = report()
    late = AblatedRun(found.runs[2].variant, replace(found.runs[2].scored, open=7))
    table = replace(found, runs=(*found.runs[:2], late, *found.runs[3:])).tables()[0]
    assert "without depth: 7 questions not asked yet are left out." in table.notes


def test_one_number_a_line_in_csv() -> None:
    found = report(cost_usd=0.25)
    lines = list(csv.DictReader(io.StringIO(found.render("csv"))))
    # The columns of `hybrid compare --csv`, so that both can be put below each other.
    assert tuple(lines[0]) == COLUMNS
    assert {line["benchmark"] for line in lines} == {"blink"}
    (headline,) = [
        line
        for line in lines
        if (line["quantity"], line["a"], line["b"], line["group"]) == ("difference", "full", "without depth", "")
    ]
    assert (float(headline["value"]), headline["n"], headline["metric"]) == (-0.375, "60", "accuracy_macro")
    harmed = {(line["b"], line["group"]): line for line in lines if line["quantity"] == "harmed"}
    jigsaw = harmed["without depth", "Jigsaw"]
    assert (jigsaw["value"], jigsaw["unit"]) == ("30", "questions")
    cost = {line["a"]: line["value"] for line in lines if line["quantity"] == "cost"}
    assert cost == dict.fromkeys((run.name for run in found.runs), "0.25")
    # Every task of every pair is there, those in which nothing changed too.
    differences = [line for line in lines if line["quantity"] == "difference"]
    assert len(differences) == (4 + 3) * 3


@pytest.mark.parametrize("form", ["text", "markdown", "latex"])
def test_every_form_holds_every_run(form: str) -> None:
    text = report().render(form)
    assert all(run.name in text for run in report().runs)


def test_text_fits_a_hundred_columns() -> None:
    assert max(map(len, report(cost_usd=0.5).render().splitlines())) <= 100


# What runs are called by in any comparison.


class Made:
    """Run folders with a manifest and nothing else."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def folder(self, name: str, menu: tuple[str, ...] | None, **more: Any) -> RunFolder:
        folder = RunFolder(self.path / name)
        identity = {"benchmark": "blink", "split": "val", **more}
        if menu is not None:
            identity["menu"] = list(menu)
        folder.path.mkdir(parents=True)
        (folder.path / "manifest.json").write_text(
            json.dumps({"format": 1, "identity": identity, "solvers": {"controller": {}}})
        )
        return folder


def called(folder: RunFolder, word: str = "controller") -> Scored:
    return solver(ANSWERS["full"], folder=folder, solver=word, recorded=word)


def test_menus_that_differ_are_in_the_names(tmp_path: Path) -> None:
    made = Made(tmp_path)
    menus = {"full": MENU, "none": (), "a": ("crop", "ocr"), "b": ("ocr",)}
    scored = [called(made.folder(name, menu)) for name, menu in menus.items()]
    assert menu_words(scored) == [(), ("no tools",), ("without depth",), ("only ocr",)]
    assert [one.solver for one in unique(scored, list(menus))] == [
        "controller",
        "controller [no tools]",
        "controller [without depth]",
        "controller [only ocr]",
    ]
    # Those of one menu are told apart as before.
    same = [one.solver for one in unique([scored[0], scored[0]], ["a", "b"])]
    assert same == ["controller (a)", "controller (b)"]


def test_menus_far_from_each_other_are_named(tmp_path: Path) -> None:
    made = Made(tmp_path)
    scored = [called(made.folder(f"{place}", menu)) for place, menu in enumerate([("a", "b"), ("c", "d", "e")])]
    assert menu_words(scored) == [("tools a, b",), ("without a, b",)]


def test_who_offers_no_menu_is_not_called_by_it(tmp_path: Path) -> None:
    made = Made(tmp_path)
    full, none, old = made.folder("full", MENU), made.folder("none", ()), made.folder("old", None)
    imported = made.folder("imported", None, imported={"field": "stored"})
    scored = [called(full, "mllm"), called(none, "mllm"), called(old), called(imported, "saved"), called(none)]
    assert menu_words([*scored, called(full)]) == [(), (), (), (), ("no tools",), ()]
    # The tools of another solver's run do not matter.
    assert menu_words([called(none), called(full, "mllm")]) == [(), ()]


def test_what_is_no_ablation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no ablation: there is no run in"):
        ablation_at(tmp_path)
    Made(tmp_path).folder("full", ())
    with pytest.raises(UsageError, match="has answers of no solver that offers tools: give --solver"):
        ablation_at(tmp_path)
    with pytest.raises(UsageError, match="no tool is offered"):
        ablation_at(tmp_path, "controller")
