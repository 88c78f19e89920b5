"""Statements about a run with tools in the form of the model's training, next to a run in hybrid's form."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.log.folder import RunFolder
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.reports import ComparisonReport, compare_paths
from hybrid.scoring.result import Result
from hybrid.scoring.sections import effects
from tests.hybrid.scoring.solvers import letters
from tests.tables import cases

R, HALF = 40 * "r", 20 * "rw"


def compared(
    synthetic_runs: Any, folder: Path, names: Sequence[str], model: dict[str, str], **identity: Any
) -> ComparisonReport:
    """Compare the controller's answers in hybrid's form and in another form with those of the MLLM alone."""
    path = synthetic_runs.from_letters(
        folder / "own", {"controller": {"Jigsaw": names[0]}, "mllm": {"Jigsaw": HALF}}
    ).path
    other = synthetic_runs.from_letters(folder / "other", {"controller": {"Jigsaw": names[1]}}).path
    run = RunFolder(other)
    manifest: Any = json.loads(json.dumps(run.manifest))
    manifest["identity"] |= identity
    manifest["identity"]["model"] |= model
    run.write_manifest(manifest)
    return compare_paths((path, other))


def sentence(report: ComparisonReport) -> list[tuple[str, str]]:
    return [(item.id, item.text) for item in report.conclusion if item.id.startswith("trained")]


@pytest.mark.parametrize(*cases(__file__, "test_a_sentence_says_what_the_form_of_the_tools_comes_to"))
def test_a_sentence_says_what_the_form_of_the_tools_comes_to(
    answers: Sequence[str], case: str, words: str, synthetic_runs: Any, tmp_path: Path
) -> None:
    style = {"name": "qwen3-vl", "frame": "thousandths", "sha256": "0"}
    (text,) = sentence(compared(synthetic_runs, tmp_path, answers, {}, tool_style=style))
    assert text[0] == case
    assert words in text[1]


T, U = ({"Counting": "30r 30w", "Jigsaw": "30r 30w", "Relative_Depth": text} for text in ("4w", "4r"))


@pytest.mark.parametrize(
    ("own", "trained", "reason"),
    [
        # A mean over tasks that four questions carry.
        (T, U, "+33 points, 25 to 42, with another result over all questions than over tasks: +3 points"),
        (
            {"Jigsaw": "100r 40w 60a"},
            {"Jigsaw": "100r 40w 60r"},
            "+30 points, 24 to 37, from answering more or fewer questions).",
        ),
        (
            {"Jigsaw": "50r 50w 100a"},
            {"Jigsaw": "50r 50w 50r 50w"},
            "+25 points, 19 to 32, depending on how unanswered questions count: +0 points",
        ),
    ],
)
@pytest.mark.parametrize("output", ["real", "paraphrased"])
def test_a_difference_that_supports_no_claim_is_none_of_the_form_or_of_the_words(
    own: dict[str, str], trained: dict[str, str], reason: str, output: str, synthetic_runs: Any, tmp_path: Path
) -> None:
    paths = []
    for name, answers in (("own", own), ("other", trained)):
        of_tasks = {task: letters(text) for task, text in answers.items()}
        control = output if name == "other" else "real"
        paths.append(synthetic_runs.from_letters(tmp_path / name, {"controller": of_tasks}, control).path)
    if output == "real":
        run = RunFolder(paths[1])
        style = {"name": "qwen3-vl", "frame": "thousandths", "sha256": "0"}
        run.write_manifest({**run.manifest, "identity": {**run.manifest["identity"], "tool_style": style}})
    sentences = compare_paths(paths).conclusion
    found = {item.id: item.text for item in sentences if item.id.split(".")[0] in ("trained", "words")}
    opening = {
        "trained.unclaimed": f"No claim for the form of the tools in its training: qwen3-vl ({reason}",
        "words.unclaimed": f"No claim for the same data in other words ({reason}",
    }
    (name,) = found
    assert name == ("trained.unclaimed" if output == "real" else "words.unclaimed")
    assert found[name].startswith(opening[name])


def test_another_effect_of_the_same_solvers_is_not_taken(
    synthetic_runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of = ConclusionRows.of

    def with_another(rows: ConclusionRows, section: str) -> tuple[Result, ...]:
        found = rows_of(rows, section)
        return (*(replace(row, quantity="another", low=None) for row in found if section == "effects"), *found)

    monkeypatch.setattr(ConclusionRows, "of", with_another)
    style = {"name": "qwen3-vl", "frame": "thousandths", "sha256": "0"}
    (text,) = sentence(compared(synthetic_runs, tmp_path, (HALF, R), {}, tool_style=style))
    assert text[0] == "trained.more"


def test_a_run_with_fewer_pictures_is_an_effect_and_no_contestant(
    synthetic_runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The replies of these runs have no tool output, so without this patch the effect would not be computed.
    monkeypatch.setattr(effects, "lacks_pictures", lambda folder, solver: False)
    report = compared(synthetic_runs, tmp_path, (R, HALF), {"keep_pictures": "latest"})
    rows = {row.quantity: row.value for row in report.results if row.section == "effects" and not row.group}
    assert rows["latest picture alone"] == -0.5
    assert sentence(report) == []
    assert len([item for item in report.conclusion if item.id.startswith("gain")]) == 1
