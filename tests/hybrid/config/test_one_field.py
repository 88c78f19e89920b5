"""A new option is one field of the configuration: it works everywhere, and no other place names it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.system
ROOT = Path(__file__).parents[3]
# A configuration with one more field replaces `RunConfig` before the command line is built from it.
PROGRAM = """
import inspect, json, os, sys
from dataclasses import dataclass
from pathlib import Path

import hybrid.config
import hybrid.config.run_config
from hybrid.config.option import IDENTITY, ASK

@dataclass(frozen=True, kw_only=True)
class Extended(hybrid.config.RunConfig):
    sharpness: int = ASK(
        "--sharpness N",
        "Sharpness of pictures. More is said below.",
        3,
        identity=IDENTITY,
        at_least=1,
        variable="HYBRID_SHARPNESS",
    )

hybrid.config.RunConfig = hybrid.config.run_config.RunConfig = Extended

import click
from click.shell_completion import ShellComplete

import hybrid
from hybrid.cli import COMPLETE, ablate, cli, run, study
from hybrid.cli._configured import runs_of
from hybrid.cli._help import HELP_ALL
from hybrid.cli.from_python import resolve
from hybrid.cli._run_config import config_of
from hybrid.config.environment import VARIABLES
from hybrid.core.errors import UsageError

sys.path.append("docs")
from _reference.commands import pages


class Facts(dict):
    def __missing__(self, key):
        return None


def line(*words):
    (options,) = runs_of(run.command.make_context("run", ["blink", "--data", "sample", *words]))
    return config_of(options.values, options.recorded)


def python(**keywords):
    options = resolve("blink", {"data": "sample", **keywords})
    return config_of(options.values, options.recorded)


def message(text):
    Path(sys.argv[1]).write_text(text)
    try:
        python(config=sys.argv[1])
    except UsageError as error:
        return str(error)


def identity(config):
    return hybrid.config.identity_of(config, Facts()).get("sharpness")


HELP_ALL_CONTEXT = click.Context(run.command)
HELP_ALL_CONTEXT.meta[HELP_ALL] = True
file = Path(sys.argv[1])
file.write_text("sharpness: 6\\n")
results = {
    "default": line().sharpness,
    "command line": [line("--sharpness", "5").sharpness, line("--sharpness", "5").options_as_used["sharpness"]],
    "file": [line("--config", str(file)).sharpness, python(config=file).sharpness],
    "python": [python(sharpness=5).sharpness, python(sharpness=5).options_as_used["sharpness"]],
    "signature": str(inspect.signature(hybrid.run).parameters["sharpness"].annotation),
    "docstring": "sharpness: Sharpness of pictures." in hybrid.run.__doc__,
    "identity": [identity(line()), identity(python(sharpness=5))],
    "help": run.command.get_help(HELP_ALL_CONTEXT),
    "reference": [page.path for page in pages() if "--sharpness" in page.text],
    "completion": [item.value for item in ShellComplete(cli, {}, "hybrid", COMPLETE).get_completions(["run"], "--sha")],
    "commands": [any(param.name == "sharpness" for param in each.command.params) for each in (study, ablate)],
    "variable": [variable.about for variable in VARIABLES if variable.name == "HYBRID_SHARPNESS"],
    "nearest": message("\\nsharpnes: 6\\n"),
    "type": message("\\n\\nsharpness: 0\\n"),
}
os.environ["HYBRID_SHARPNESS"] = "7"
results["environment"] = [line().sharpness, python().sharpness]
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    file = tmp_path_factory.mktemp("field") / "run.yaml"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HYBRID_")}
    process = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    answers: dict[str, Any] = json.loads(process.stdout)
    return answers


def test_it_is_an_option_of_the_command_line_a_file_the_environment_and_python(results: dict[str, Any]) -> None:
    assert results["default"] == 3
    assert results["command line"] == [5, 5]
    assert results["file"] == [6, 6]
    assert results["environment"] == [7, 7]
    assert results["python"] == [5, 5]
    assert results["commands"] == [True, True]


def test_it_is_part_of_the_identity(results: dict[str, Any]) -> None:
    assert results["identity"] == [3, 5]


def test_it_is_described_wherever_options_are(results: dict[str, Any]) -> None:
    assert "--sharpness N" in results["help"]
    assert "Sharpness of pictures." in results["help"]
    assert results["reference"] == [f"reference/commands/{name}.md" for name in ("run", "ask", "study", "ablate")]
    assert results["completion"] == ["--sharpness"]
    assert (results["signature"], results["docstring"]) == ("int | None", True)
    assert results["variable"] == ["Default of `--sharpness`."]


def test_a_mistake_in_a_file_is_named_with_its_line_and_the_nearest_option(results: dict[str, Any]) -> None:
    assert "run.yaml, line 2: no option 'sharpnes' (did you mean 'sharpness'?)" in results["nearest"]
    assert "run.yaml, line 3: sharpness: 0 is not in the range x>=1" in results["type"]
