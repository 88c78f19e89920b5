"""`hybrid study`: a small study of generated questions end to end, its estimate, recorded results, refusals."""

import json
from pathlib import Path

import pytest

from tests.finished_runs import Command, Words
from tests.tables import cases

SAMPLE = ("blink", "--data", "sample", "--task", "Jigsaw", "--limit", "2", "--model", "embedded")


@pytest.mark.system
def test_a_study_asks_its_cells_says_what_came_out_and_asks_nothing_twice(command: Command, tmp_path: Path) -> None:
    words = ("study", *SAMPLE, "--backend", "classical", "-o", tmp_path / "study")
    result = command(*words, code=0)
    assert (
        "Accuracy is 1.000 with tools (controller), 0.500 alone (mllm): no significant\ndifference (95% CI "
        in result.out
    )
    for table in (
        *("gain of controller over mllm, 2 questions", "effects on accuracy_macro", "only with tools"),
        *("calls that changed nothing", "what one part alone knows"),
    ):
        assert table in result.out
    lines = {path: path.read_bytes() for path in (tmp_path / "study").glob("*/*/attempts.jsonl")}
    assert {path.parts[-3] for path in lines} == {"with-tools", "blank-tools"}
    second = command(*words, "--json")
    data = json.loads(second.out)
    assert second.code == 0
    assert {path: path.read_bytes() for path in lines} == lines
    assert data["study"]["blank-tools"] == str(tmp_path / "study" / "blank-tools")
    parts = {
        row["quantity"]: row["value"]
        for row in data["results"]
        if row["section"] == "decomposition" and not row.get("group") and not row.get("metric")
    }
    total = (
        parts["gain with a call"]
        + parts["gain without a call"]
        - parts["harm with a call"]
        - parts["harm without a call"]
    )
    assert total == pytest.approx(parts["gain"], abs=1e-12)


def test_a_dry_run_prices_every_cell_and_asks_nothing(command: Command, tmp_path: Path) -> None:
    result = command("study", *SAMPLE, "--depth", "full", "-o", tmp_path / "study", "--dry-run", "--json", code=0)
    data = json.loads(result.out)
    assert list(data["runs"]) == [
        *(
            "with-tools",
            "blank-tools",
            "other-findings",
            "oracle",
            "other-words",
            "findings-as-text",
            "findings-as-pictures",
        ),
        "latest-picture",
    ]
    assert data["total"]["questions"] == 2 * (5 + 7)
    assert not (tmp_path / "study").exists()


@pytest.mark.system
@pytest.mark.usefixtures("tools_as_they_were")
def test_the_cell_of_other_words_is_left_out_if_a_tool_has_no_second_wording(command: Command, tmp_path: Path) -> None:
    """If one offered tool lacks a second wording, the study says so before it asks, and only the cell with other words
    is left out."""
    (tmp_path / "redness.py").write_text(
        "from hybrid.tool import Image, ToolOutput, tool\n\n"
        '@tool(limits="Says nothing of what the picture shows.")\n'
        "def redness(image: Image) -> ToolOutput:\n"
        '    """Says how red an image is as a whole."""\n'
        '    return ToolOutput("It is red.")\n'
    )
    words = ("study", *SAMPLE, "--depth", "full", "-o", tmp_path / "study", "--dry-run", "--json", "--path", tmp_path)
    result = command(*words, "--tools", "jigsaw,redness", code=0)
    runs = json.loads(result.out)["runs"]
    assert len(runs) == 7
    assert "other-words" not in runs
    assert (
        "note: other-words is not asked, because these tools have no second wording (Tool.wording): redness"
        in result.err
    )


def test_recorded_results_are_decomposed_without_asking(command: Command, tmp_path: Path) -> None:
    (tmp_path / "alone.csv").write_text("id,correct\na,0\nb,1\nc,0\n")
    (tmp_path / "tools.csv").write_text("id,correct,calls\na,1,1\nb,1,0\nc,0,2\n")
    result = command("study", "--recorded", "alone.csv", "--recorded", "tools.csv", code=0)
    assert "gain of tools over alone, 3 questions" in result.out
    assert "so presence, result, loop and luck are not computed" in result.err
    latex = command("study", "--recorded", "alone.csv", "--recorded", "tools.csv", "--latex").out
    assert r"part & value & 95 \%" in latex
    rows = json.loads(command("study", "--recorded", "alone.csv", "--recorded", "tools.csv", "--json").out)["results"]
    assert {row["quantity"]: row["value"] for row in rows}["gain with a call"] == pytest.approx(1 / 3)


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--depth", "full")])
def test_a_study_of_hidden_answers_stops_before_it_asks(command: Command, tmp_path: Path, words: Words) -> None:
    command("data", "template", "-o", tmp_path / "mine.jsonl", code=0)
    study = ("study", tmp_path / "mine.jsonl", "--split", "hidden", "--model", "embedded", "-o", tmp_path / "study")
    result = command(*study, *words, code=2)
    assert "are hidden, so a study has nothing to compare: use `hybrid run`" in result.err
    assert not list(tmp_path.glob("study/*/*/attempts.jsonl"))


@pytest.mark.parametrize(*cases(__file__, "test_what_cannot_be_studied_is_named"))
def test_what_cannot_be_studied_is_named(command: Command, words: Words, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,correct\nq,1\n")
    result = command("study", *words)
    assert result.code != 0
    assert message in result.err
