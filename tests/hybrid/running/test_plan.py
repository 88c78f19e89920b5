"""Several runs of one configuration: the options that differ in a run, and their record in its manifest."""

from pathlib import Path

import pytest

from hybrid.config import RunConfig
from hybrid.running.plan import PlannedRun, changed

CHANGES = {"tools": ("depth", "crop"), "solvers": ("mllm",), "tool_output": "blank", "out": Path("runs/a")}


def test_the_manifest_tells_what_was_changed_and_no_folder() -> None:
    config = RunConfig("blink", options_as_used={"benchmark": "blink", "tools": "ocr", "limit": 3})
    built = changed(config, CHANGES)
    assert (built.tools, built.solvers, built.tool_output, built.out) == tuple(CHANGES.values())
    assert built.options_as_used == {
        "benchmark": "blink",
        "limit": 3,
        "tools": "depth,crop",
        "solver": ["mllm"],
        "tool-output": "blank",
    }


def test_a_configuration_of_python_stays_without_options() -> None:
    assert changed(RunConfig("blink"), CHANGES).options_as_used == {}


@pytest.mark.parametrize(("former", "folder"), [("", "blank-tools"), ("format-only", "format-only")])
def test_a_run_goes_on_in_the_folder_of_its_former_name(tmp_path: Path, former: str, folder: str) -> None:
    (tmp_path / former).mkdir(exist_ok=True)
    planned = PlannedRun("blank-tools", "", {"tool_output": "blank"}, "format-only")
    assert planned.config(RunConfig("blink"), tmp_path).out == tmp_path / folder
