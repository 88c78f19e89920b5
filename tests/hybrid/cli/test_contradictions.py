"""Contradictory options are refused, and options without effect are reported."""

import itertools
from pathlib import Path

import pytest

from hybrid.cli._options import FORMS
from tests.finished_runs import Command, Words


@pytest.mark.parametrize("words", [("compare", "run"), ("ablate", "--report", "run")], ids=["compare", "ablate"])
def test_two_forms_of_one_output_are_refused(command: Command, tmp_path: Path, words: Words) -> None:
    (tmp_path / "run").mkdir()
    for combination, other in itertools.combinations(FORMS, 2):
        result = command(*words, f"--{other}", f"--{combination}", code=2)
        assert result.err == f"hybrid: --{combination} and --{other} are alternative output formats: choose one\n"


def test_each_form_alone_is_printed(command: Command, blink: Words) -> None:
    command("run", *blink, "--solver", "mllm", code=0)
    by_form = {form: command("compare", "run", f"--{form}") for form in FORMS}
    assert {value.code for value in by_form.values()} == {0}
    assert by_form["json"].out.startswith("{")
    assert by_form["csv"].out.splitlines()[0].count(",") > 3
    assert "\\begin{tabular}" in by_form["latex"].out
    assert "| --- |" in by_form["markdown"].out.replace("---:", "---") or "|---" in by_form["markdown"].out.replace(
        ":", ""
    )


def test_an_ablation_that_is_only_printed_takes_no_option_of_asking(command: Command, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    result = command(
        "ablate", "--report", "run", "--limit", "3", "--model", "embedded", "--markdown", "--quiet", code=2
    )
    assert result.err == "hybrid: --report prints an existing ablation: leave out --limit, --model\n"
    # These options are accepted: the only error is about the folder.
    assert "contains no ablation" in command("ablate", "--report", "run", "--solver", "controller", "--csv").err
