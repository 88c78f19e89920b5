"""Names of solvers in other tools: answers of no MLLM go under no MLLM's name."""

from pathlib import Path
from typing import Any

import pytest

from hybrid.exporting.base import ExportedRun


def test_a_log_of_inspect_has_no_mllm_for_a_specialist(made_up_runs: Any, tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    from hybrid.exporting.base import ExportOptions
    from hybrid.exporting.inspect import EXPORTER

    made = made_up_runs.write(tmp_path, "blink", size=2)
    for solver, model in (("specialist", "none/specialist"), ("mllm", "made/up")):
        EXPORTER.export(ExportedRun.at(made.real / solver), tmp_path / f"{solver}.json", ExportOptions(images="none"))
        assert log.read_eval_log(str(tmp_path / f"{solver}.json")).eval.model == model
