"""Keys from `.env`: found by name, overridden by the environment, never shown and never written."""

import json
import os
from pathlib import Path

import pytest

import hybrid
from hybrid.core.secrets import REDACTED, redact
from hybrid.models import env_file
from tests import servers
from tests.finished_runs import Command

SECRET = "sk-file-0123456789abcdef"  # noqa: S105 - made up
NAMES = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OLLAMA_API_KEY", "HF_TOKEN")
OTHERS = ("MISTRAL_API_KEY", "OPENAI_BASE_URL", "HTTPS_PROXY", "HYBRID_TOOL_PATH", "LD_PRELOAD")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without keys, restored after the test."""
    for name in (*NAMES, *OTHERS):
        # Set first, so that the variable is removed again even if it was absent.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(env_file, "_loaded", set())


def read_keys(command: Command, code: int = 0) -> dict[str, str | None]:
    result = command("keys", "--json", code=code)
    assert SECRET not in result.out + result.err
    return {row["variable"]: row["found_in"] for row in json.loads(result.out)["keys"]}


def test_keys_are_listed_by_name_with_where_they_are(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(read_keys(command, code=3).values()) == {None}
    Path(".env").write_text(f"OPENAI_API_KEY='{SECRET}'\nexport MISTRAL_API_KEY={SECRET}\nANTHROPIC_API_KEY={SECRET}\n")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from-the-environment-1")
    keys = read_keys(command)
    assert keys["OPENAI_API_KEY"] == keys["MISTRAL_API_KEY"] == ".env"
    assert keys["ANTHROPIC_API_KEY"] == "environment"
    assert keys["HF_TOKEN"] is None
    assert os.environ["ANTHROPIC_API_KEY"] == "from-the-environment-1"
    table = command("keys", code=0).out
    assert SECRET not in table
    assert "OPENAI_API_KEY" in table


def test_a_variable_that_is_set_to_nothing_is_off(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "")
    Path(".env").write_text(f"OPENAI_API_KEY={SECRET}\n")
    assert read_keys(command, code=3)["OPENAI_API_KEY"] is None
    assert os.environ["OPENAI_API_KEY"] == ""


def test_only_names_of_secrets_are_read(command: Command) -> None:
    lines = ["OPENAI_BASE_URL=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "HYBRID_TOOL_PATH=tools"]
    Path(".env").write_text("\n".join([*lines, "LD_PRELOAD=x.so", f"OPENAI_API_KEY=${{HOME}}{SECRET}"]))
    result = command("keys", code=0)
    assert "not read from .env" in result.err
    assert all(name in result.err and name not in os.environ for name in OTHERS[1:])
    # The text `${HOME}` in a value is not substituted.
    assert os.environ["OPENAI_API_KEY"] == f"${{HOME}}{SECRET}"


def test_a_run_asks_with_the_key_of_the_file_and_writes_it_nowhere(
    command: Command, tmp_path: Path, fakes: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    Path("photo.png").write_bytes(fakes.encoded(fakes.pixels(1)))  # type: ignore[attr-defined]
    words = ("ask", "photo.png", "Which?", "--choice", "x", "--choice", "y", "--solver", "mllm", "--out", "run")
    with servers.provider(SECRET, "m") as url:
        options = ("--model", "openai:m", "--base-url", url)
        refused = command(*words, *options, code=2)
        assert "rejected" in refused.err
        Path(".env").write_text(f"OPENAI_API_KEY={SECRET}\n")
        result = command(*words, *options, "--debug", code=0)
    assert "answer: A" in result.out
    assert redact(f"key {SECRET}") == f"key {REDACTED}"
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.name != ".env"]
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]
    assert SECRET not in result.out + result.err


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe\x00K", ".env is not UTF-8"), (b"A=" + b"x" * 1_000_001, ".env is larger than 1,000,000 bytes")],
)
def test_an_unreadable_file_is_named_and_costs_only_its_keys(command: Command, content: bytes, message: str) -> None:
    Path(".env").write_bytes(content)
    assert f"warning: {message}" in command("solvers", "list", code=0).err
    assert message in command("keys", code=2).err


def test_a_folder_of_that_name_is_no_file_of_keys(command: Command) -> None:
    Path(".env").mkdir()
    assert "warning" not in command("solvers", "list", code=0).err


def test_lines_that_are_no_assignment_do_not_cost_the_others(command: Command) -> None:
    Path(".env").write_text(f'\ufeff# keys\n\n= 3\nHF_TOKEN\nOPENAI_API_KEY = "{SECRET}" # mine\r\n')
    assert read_keys(command)["OPENAI_API_KEY"] == ".env"


def test_python_reads_the_file_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text(f"OPENAI_API_KEY={SECRET}\n")
    with pytest.raises(Exception, match="no_such_benchmark"):
        hybrid.run("no_such_benchmark", model="embedded")
    assert os.environ["OPENAI_API_KEY"] == SECRET
