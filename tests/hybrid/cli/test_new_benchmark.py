"""`hybrid new benchmark` writes a benchmark that runs and passes its own test; the same for tools in a folder."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.finished_runs import Command


@pytest.mark.system
def test_the_benchmark_passes_its_own_test(tmp_path: Path, command: Command, tools_as_they_were: None) -> None:
    mine = tmp_path / "mine"
    result = command("new", "benchmark", "changes", "--path", mine, code=0)
    assert f"wrote {mine / 'benchmarks' / 'changes.py'}" in result.out
    out = command("benchmarks", "show", "changes", "--path", mine, code=0).out
    assert "  difference " in out
    words = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", str(mine / "benchmarks")]
    process = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "5 passed" in process.stdout, process.stdout
    assert "already exists" in command("new", "benchmark", "changes", "--path", mine, code=2).err
    assert "lower-case letters" in command("new", "benchmark", "Changes", "--path", mine, code=2).err


def test_a_tool_of_a_folder_laid_out_like_the_project_is_begun_where_it_is_found(
    tmp_path: Path, command: Command
) -> None:
    (tmp_path / "mine" / "benchmarks").mkdir(parents=True)
    command("tools", "new", "glow", "--path", tmp_path / "mine", code=0)
    assert (tmp_path / "mine" / "tools" / "glow.py").is_file()
    assert f"--path {tmp_path / 'mine'}`" in (tmp_path / "mine" / "tools" / "glow.py").read_text()
    command("tools", "new", "glow", "--path", tmp_path / "plain", code=0)
    assert (tmp_path / "plain" / "glow.py").is_file()


def test_what_would_not_be_found_is_not_begun(tmp_path: Path, command: Command, tools_as_they_were: None) -> None:
    spaced = tmp_path / "my things"
    for words in (("benchmark", "changes"), ("recipe", "traffic")):
        out = command("new", *words, "--path", spaced, code=0).out
        assert f"--path '{spaced}'" in out
    assert f"pytest '{spaced / 'benchmarks' / 'test_changes.py'}'" in command(
        "new", "benchmark", "others", "--path", spaced, code=0
    ).out.replace("test_others", "test_changes")
    for words, message in (
        (("benchmark", "blink"), "blink is already a benchmark of the project"),
        (("recipe", "pope"), "pope is already a benchmark of the project"),
        (("recipe", "changes"), "changes.py already exists"),
        (("benchmark", "traffic"), "traffic.yaml already exists"),
    ):
        assert message in command("new", *words, "--path", spaced, code=2).err
    command("tools", "new", "glow", "--path", tmp_path / "plain", code=0)
    refused = command("new", "benchmark", "changes", "--path", tmp_path / "plain", code=2)
    assert "plain contains tools (glow), which would no longer be found next to a benchmarks/ folder" in refused.err
    assert not (tmp_path / "plain" / "benchmarks").exists()
    (tmp_path / "plain" / "benchmarks").mkdir()
    (tmp_path / "plain" / "benchmarks" / "changes.yaml").write_bytes(
        (spaced / "benchmarks" / "traffic.yaml").read_bytes()
    )
    hidden = command("tools", "show", "glow", "--path", tmp_path / "plain", code=2)
    assert f"so its tools belong in {tmp_path / 'plain' / 'tools'}/" in hidden.err
