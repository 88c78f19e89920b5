"""Tests of which cells of a study can be run."""

from pathlib import Path

from hybrid.config import Objects, RunConfig
from hybrid.running.study import cells_of, leave_out_other_words
from hybrid.tool import Image, ToolOutput, tool


@tool(limits="Says nothing of what the picture shows.")
def redness(image: Image) -> ToolOutput:
    """Returns the mean redness of an image."""
    return ToolOutput("It is red.")


@tool(limits="Says nothing of what the picture shows.", wording=[("is blue", "looks blue")])
def blueness(image: Image) -> ToolOutput:
    """Returns the mean blueness of an image."""
    return ToolOutput("It is blue.")


def test_other_words_are_left_out_if_a_tool_has_no_second_wording(tmp_path: Path) -> None:
    objects = Objects(tools={"redness": redness, "blueness": blueness})
    config = RunConfig("blink", data="sample", model="embedded", tools=("redness", "blueness", "crop"), objects=objects)
    full = cells_of("full", "controller")
    cells, lacking = leave_out_other_words(full, config, tmp_path)
    assert lacking == ("redness",)
    assert [cell.name for cell in cells] == [cell.name for cell in full if cell.name != "other-words"]
    worded = RunConfig("blink", data="sample", model="embedded", tools=("blueness", "crop"), objects=objects)
    assert leave_out_other_words(full, worded, tmp_path) == (full, ())
    # If the cell with other words is not requested, nothing is left out.
    quick = cells_of("quick", "controller")
    assert leave_out_other_words(quick, config, tmp_path) == (quick, ())
