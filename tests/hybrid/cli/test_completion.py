"""Shell completions, requested as a shell does: by click's protocol of environment variables."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from hybrid.cli import COMPLETE, cli
from hybrid.plugins.registry import names, solver_names
from tests.finished_runs import Command

HEAVY = ("torch", "numpy", "PIL", "langchain_core", "pydantic", "pyarrow", "yaml")


def complete(*words: str) -> list[str]:
    """Return the completions of the last word."""
    completer = ShellComplete(cli, {}, "hybrid", COMPLETE)
    return [item.value for item in completer.get_completions(list(words[:-1]), words[-1])]


def test_names_are_offered() -> None:
    assert (
        complete("run", "")
        == complete("ablate", "")
        == complete("benchmarks", "show", "")
        == [*names("hybrid.benchmarks")]
    )
    assert complete("run", "bl") == ["blink"]
    assert complete("run", "blink", "--solver", "") == [*solver_names()]
    assert complete("run", "blink", "--solver", "mllm", "--solver", "con") == ["controller"]
    assert complete("tools", "show", "jig") == complete("tools", "fetch", "crop", "jig") == ["jigsaw"]
    assert complete("run", "blink", "--tools", "depth,cro") == ["depth,crop"]
    assert complete("run", "blink", "--solver", "mllm,arb") == ["mllm,arbiter"]
    assert "depth,depth" not in complete("run", "blink", "--tools", "depth,")
    assert complete("run", "blink", "--tool-output", "s") == ["shuffled"]
    assert "completion" in complete("co")


def test_runs_are_offered_the_youngest_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert complete("report", "") == [""]
    for age, name in enumerate(("new", "old", "older")):
        Path("runs", name).mkdir(parents=True)
        manifest = Path("runs", name, "manifest.json")
        manifest.touch()
        os.utime(manifest.parent, (1e9 - age, 1e9 - age))
    Path("runs", "no-run").mkdir()
    youngest = ["runs/new", "runs/old", "runs/older"]
    for words in (["compare"], ["compare", "runs/old"], ["score"], ["report"], ["view"], ["judge"], ["calibrate"]):
        assert complete(*words, "") == youngest
    assert complete("run", "--config", "runs/ol") == youngest[1:]


@pytest.mark.system
def test_a_shell_is_answered_without_heavy_imports() -> None:
    program = (
        "import sys\n"
        "from hybrid.cli import main\n"
        "try:\n    main()\n"
        f"finally:\n    print([name for name in {HEAVY} if name in sys.modules])\n"
    )
    request = {COMPLETE: "bash_complete", "COMP_WORDS": "hybrid run blink --solver spec", "COMP_CWORD": "4"}
    result = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **request}, capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["plain,specialist", "[]"]


@pytest.mark.system
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_by_the_protocol(command: Command, shell: str) -> None:
    assert f"{COMPLETE}={shell}_complete" in command("completion", shell, code=0).out
    assert command("completion", "tcsh").code == 2
