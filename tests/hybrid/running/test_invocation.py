"""The commands that made a run, as its manifest records them."""

import os
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest

from hybrid.config import RunConfig, ServiceOptions
from hybrid.log.manifest import Invocation, read_manifest
from hybrid.running.identity import command_line, commit_of
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from tests.tables import cases


def quiet(solver: str, finished: int, total: int) -> None:
    """Show no progress."""


@pytest.mark.parametrize(*cases(__file__, "test_the_program_is_called_by_its_name", list))
def test_the_program_is_called_by_its_name(words: list[str], line: str) -> None:
    assert command_line(words) == line


def git(folder: Path, *words: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    return subprocess.run(
        ["git", *identity, *words], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.mark.system
def test_the_commit_is_that_of_the_clone_and_says_what_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "tag", "v1")
    head = git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert commit_of(tmp_path) == head
    (tmp_path / "code.py").write_text("2\n")
    commit_of.cache_clear()
    assert commit_of(tmp_path) == f"{head}-dirty"
    inside = tmp_path / "site-packages"
    inside.mkdir()
    assert commit_of(inside) is None


@pytest.mark.system
def test_the_question_for_the_commit_leaves_the_index_alone(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "code.py").write_text("1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    # The times of the file differ from those in the index, so git would write the index again.
    os.utime(tmp_path / "code.py", (1, 1))
    index = tmp_path / ".git" / "index"
    content = index.read_bytes()
    assert commit_of(tmp_path) == git(tmp_path, "rev-parse", "HEAD")
    assert index.read_bytes() == content


@pytest.mark.system
def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert commit_of(tmp_path) is None


@pytest.mark.system
async def test_every_command_is_added_without_its_secrets_and_the_run_stays_the_same(
    tmp_path: Path, fakes: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = fakes.blink_folder(tmp_path / "blink")  # type: ignore[attr-defined]
    config = RunConfig(
        "blink", ("specialist",), data=str(data), service=ServiceOptions("classical"), out=tmp_path / "r"
    )
    words = [
        "--model-arg",
        "api_key=sk-very-private",
        "--base-url",
        "http://me:hunter-22@host/v1",
        "--token",
        "it's-a-secret",
    ]
    monkeypatch.setattr(sys, "argv", ["hybrid", "run", "blink", *words, "--max-tokens", "123456"])
    variant = datetime.now(UTC).replace(microsecond=0)
    await ask_run(prepare(config), quiet)
    path = tmp_path / "r" / "manifest.json"
    old = read_manifest(path)
    (first,) = old["commands"]
    text = "--model-arg 'api_key=[redacted]' --base-url 'http://me:[redacted]@host/v1' --token '[redacted]'"
    assert first["command"] == f"hybrid run blink {text} --max-tokens 123456"
    assert variant <= datetime.fromisoformat(first["at"]) <= datetime.now(UTC)
    monkeypatch.setattr(sys, "argv", ["hybrid", "run", "blink"])
    await ask_run(prepare(config), quiet)
    await ask_run(prepare(config), quiet)
    commands = [Invocation(**item) for item in read_manifest(path)["commands"]]
    assert [command.command for command in commands] == [first["command"], *["hybrid run blink"] * 2]
    assert asdict(commands[0]).keys() == {"at", "command", "commit"}
    assert read_manifest(path)["identity"] == old["identity"]
