"""A beginner's mistakes end early, with one message that says what to do."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.plugins.registry import load
from tests.finished_runs import Command, Words
from tests.servers import JsonHandler, LocalServer, listening
from tests.tables import cases

BENCHMARKS = ("blink", "actiview", "mvp_bench", "mm_sap", "hvsbench")
NO_MODEL = ("--solver", "chance", "--dry-run")


def openai(message: str, code: str | int | None = None) -> str:
    """Return an error in the words of OpenAI and of most compatible servers."""
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}})


SAID: dict[str, tuple[int, str, str, str]] = {name: tuple(rest) for name, *rest in cases(__file__, "SAID")[1]}


class Sayer(LocalServer):
    """Returns `status` and `body` for every request, and counts requests."""

    status = 200
    body = ""
    request_count = 0


class _Says(JsonHandler):
    def posted(self, body: bytes) -> None:
        server = self.server
        assert isinstance(server, Sayer)
        server.request_count += 1
        kind = {"content-type": "text/html"} if server.body.startswith("<") else None
        self.answer(server.body.encode(), server.status, kind)


@pytest.fixture
def sayer() -> Iterator[Sayer]:
    # One server per case: late requests of a stopped run would be counted in the next one.
    with listening(Sayer(_Says)) as server:
        yield server


@pytest.fixture
def asking(command: Command, tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run `hybrid run blink` on six questions without a key or address from the environment."""
    for name in os.environ:
        if name.endswith(("_API_KEY", "_BASE_URL", "_proxy", "_PROXY")) or name == "OLLAMA_HOST":
            monkeypatch.delenv(name)
    data = fakes.blink_folder(tmp_path / "blink")

    def ask(*words: str) -> Any:
        return command("run", "blink", "--data", data, "--backend", "classical", "--out", tmp_path / "run", *words)

    return ask


def the_message(result: Any) -> str:
    """Return the only error line; apart from it the program prints only what it was about to do."""
    assert (result.code, result.out) == (2, "")
    (line,) = [line for line in result.err.splitlines() if line.startswith("hybrid: ")]
    assert "failed: " not in result.err
    assert "Traceback" not in result.err
    return str(line)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("case", SAID)
def test_a_server_that_is_not_what_it_should_be(asking: Command, sayer: Sayer, case: str, tmp_path: Path) -> None:
    sayer.status, sayer.body, solver, text = SAID[case]
    sayer.request_count = 0
    result = asking("--solver", solver, "--model", "openai:m", "--base-url", f"{sayer.url}/v1", "--concurrency", "4")
    message = the_message(result)
    assert message.startswith("hybrid: --model openai:m: ")
    assert text in message
    assert sayer.request_count <= 8
    # A model that cannot be reached leaves no run without answers.
    assert not (tmp_path / "run").exists()


def test_a_model_that_a_probe_refuses_leaves_no_folder(command: Command, sayer: Sayer, fakes: Any) -> None:
    data = fakes.blink_folder(Path("blink"))
    message = {"role": "assistant", "content": "Answer: (A)"}
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    sayer.body = json.dumps({"id": "x", "model": "m", "choices": choices, "usage": usage})
    words = ("run", "blink", "--data", data, "--solver", "mllm", "--model", "openai:m")
    result = command(*words, "--base-url", f"{sayer.url}/v1", code=2)
    assert "does not see" in result.err
    assert not Path("runs").exists()


@pytest.mark.parametrize(*cases(__file__, "test_no_key_and_no_such_provider"))
def test_no_key_and_no_such_provider(asking: Command, model: str, message: str) -> None:
    result = asking("--solver", "mllm", "--model", model)
    assert message in the_message(result)
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(*cases(__file__, "test_a_misspelt_word_is_answered_with_the_nearest"))
def test_a_misspelt_word_is_answered_with_the_nearest(command: Command, words: Words, message: str) -> None:
    assert message in command(*words, code=2).err


def test_a_misspelt_variable_is_told_of(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HYBRID_MODLE", "HYBRID_DATA_BLNK", "HYBRID_MODEL", "HYBRID_DATA_BLINK", "HYBRID_POWER_TRAIN"):
        monkeypatch.setenv(name, "x")
    notes = [line for line in command("solvers", "list").err.splitlines() if line.startswith("note: ")]
    assert sorted(notes) == [
        "note: the variable HYBRID_DATA_BLNK is not read (did you mean 'HYBRID_DATA_BLINK'?)",
        "note: the variable HYBRID_MODLE is not read (did you mean 'HYBRID_MODEL'?)",
    ]


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return, by benchmark, a folder with a few generated questions."""
    root = tmp_path_factory.mktemp("samples")
    results = {}
    for name in BENCHMARKS:
        benchmark = load("hybrid.benchmarks", name)
        results[name] = root / f"of-{name}" / "data-set"
        results[name].mkdir(parents=True)
        benchmark.generate(results[name], benchmark.card.sample_tasks[:1], 1, 0)
    return results


@pytest.mark.parametrize("name", BENCHMARKS)
def test_one_level_too_high(command: Command, samples: dict[str, Path], name: str) -> None:
    folder = samples[name]
    result = command("run", name, "--data", folder.parent, *NO_MODEL)
    # MM-SAP's files are found in folders at any depth.
    assert (
        result.code == 0 if name == "mm_sap" else f"; they are in {folder}: use --data {folder}" in the_message(result)
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_data_of_another_benchmark(command: Command, samples: dict[str, Path], name: str) -> None:
    for other in set(BENCHMARKS) - {name}:
        result = command("run", name, "--data", samples[other], *NO_MODEL)
        assert f" data: hybrid run {other} --data {samples[other]}" in the_message(result)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_nothing_there_and_a_file(command: Command, tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    hub = load("hybrid.benchmarks", name).card.hub_id is not None
    text = the_message(command("run", name, "--data", "empty", *NO_MODEL))
    assert text.endswith("; or use --data hub" if hub else f"`hybrid benchmarks show {name}` says where they are")
    assert "this is a file; give the folder" in the_message(command("run", name, "--data", "file", *NO_MODEL))


@pytest.fixture(scope="module")
def runs(samples: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two runs, of two benchmarks."""
    from click.testing import CliRunner

    from hybrid.cli import cli

    folder = tmp_path_factory.mktemp("runs")
    for name in ("blink", "mm_sap"):
        words = ["run", name, "--data", str(samples[name]), "--solver", "chance", "--out", str(folder / name)]
        assert CliRunner().invoke(cli, words, standalone_mode=False).return_value == 0
    return folder


def test_runs_that_cannot_be_compared(command: Command, runs: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    blink = runs / "blink"
    result = command("compare", blink, runs / "mm_sap", code=2)
    assert "two benchmarks cannot be compared" in result.err
    assert result.err.endswith("\nname runs of one of them; `hybrid report` takes both\n")
    for second in (blink, f"{blink}/.", os.path.relpath(blink)):
        assert "is given twice" in the_message(command("compare", blink, second))
        assert "give each run once" in the_message(command("report", blink, second, "-o", "site"))
        assert "give each run once" in the_message(command("score", blink, second))
    assert f"because {blink} is its run: give one of them" in the_message(command("compare", blink, blink / "chance"))
    assert "empty is not a run" in the_message(command("compare", blink, "empty"))


@pytest.mark.parametrize(
    "words", [("compare",), ("score",), ("report", "-o", "site"), ("judge", "--model", "embedded")]
)
def test_what_is_no_run(command: Command, runs: Path, tmp_path: Path, words: Words) -> None:
    (tmp_path / "empty").mkdir()
    assert "empty is not a run" in the_message(command(words[0], "empty", *words[1:]))
    above = the_message(command(words[0], runs, *words[1:]))
    assert (
        f"it contains runs: give one of them, such as {runs / 'blink'} (`hybrid runs list {runs}` shows all)"
    ) in above
    assert "'absent' does not exist" in command(words[0], "absent", *words[1:], code=2).err


def test_a_folder_of_runs_is_not_viewed(command: Command, runs: Path) -> None:
    assert f"it contains runs: give one of them, such as {runs / 'blink'}" in the_message(command("view", runs))


def test_a_solver_where_a_run_is_wanted(command: Command, runs: Path) -> None:
    assert f"; the run is {runs / 'blink'}" in the_message(command("view", runs / "blink" / "chance"))
