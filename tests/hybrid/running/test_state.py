"""A run that goes on: its data is read only where it must be, and the manifest says how much there is."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.base import ScoreOptions
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.images import home
from hybrid.log.attempts import Unfinished
from hybrid.log.codec import to_json
from hybrid.messages import AssistantMessage, Message
from hybrid.models.base import CallKey
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import execute
from hybrid.scoring.runs import score_run
from hybrid.tool import Tool
from hybrid.types import Json


@pytest.fixture
def config(tmp_path: Path, fakes: Any) -> RunConfig:
    data = fakes.blink_folder(tmp_path / "blink")
    service = ServiceOptions("classical")
    return RunConfig("blink", ("chance",), data=str(data), service=service, out=tmp_path / "run")


async def asked(config: RunConfig) -> ResolvedRun:
    run = prepare(config)
    assert await execute(run, lambda *_: None) == ()
    return run


def forget_images() -> None:
    """Empty the store; who reads the data fills it again."""
    shutil.rmtree(home() / "images")


def images() -> int:
    return sum(path.is_file() for path in (home() / "images").rglob("*"))


def leave_open(run: ResolvedRun, count: int) -> None:
    """Take the last answers away, as a kill does that comes before they are written."""
    path = run.folder.path / "chance" / "attempts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-count]))
    manifest = run.folder.manifest
    del manifest["files"]["chance/attempts.jsonl"]
    run.folder.write_manifest(manifest)


async def test_a_finished_run_does_not_read_its_data_again(config: RunConfig) -> None:
    first = await asked(config)
    forget_images()
    again = await asked(config)
    assert list(again.questions) == list(first.questions)
    assert images() == 0


async def test_an_open_question_has_its_images(config: RunConfig) -> None:
    run = await asked(config)
    before = images()
    leave_open(run, 1)
    forget_images()
    await asked(config)
    assert images() == before


async def test_a_damaged_image_of_a_question_that_failed_is_mended(config: RunConfig) -> None:
    run = await asked(config)
    leave_open(run, 1)
    (failed,) = run.open_questions("chance")
    journal = run.folder.journal("chance")
    journal.append(to_json(Unfinished, Unfinished(failed.id, "the image is damaged")))
    journal.close()
    store = run.mounted.source.store
    store.path(failed.images[0].sha256).write_bytes(b"damaged")
    await asked(config)
    assert store.read(failed.images[0])


@pytest.mark.parametrize("change", ["limit", "code", "damage"])
async def test_data_is_read_again_where_its_questions_may_be_others(config: RunConfig, change: str) -> None:
    run = await asked(config)
    path = run.folder.path / "questions.jsonl"
    whole, manifest = path.read_bytes(), run.folder.manifest
    assert manifest["taken"]["limit"] is None
    if change == "code":
        manifest["taken"]["code"] = "of another reader"
        run.folder.write_manifest(manifest)
    if change == "damage":
        path.write_bytes(whole.replace(b"(A)", b"(B)", 1))
    forget_images()
    await asked(replace(config, limit=4) if change == "limit" else config)
    assert images() > 0
    assert path.read_bytes() == whole
    assert run.folder.manifest["taken"]["limit"] is None


async def test_a_run_that_grew_by_limits_is_taken_as_the_largest(config: RunConfig) -> None:
    run = await asked(replace(config, limit=2))
    assert run.folder.manifest["taken"]["limit"] == 2
    await asked(config)
    assert run.folder.manifest["taken"]["limit"] is None
    forget_images()
    assert len((await asked(config)).questions) == 6
    assert images() == 0


async def test_the_manifest_says_what_was_written(config: RunConfig) -> None:
    run = await asked(replace(config, limit=2))
    await asked(config)
    for name in ("questions.jsonl", "chance/attempts.jsonl"):
        assert run.folder.manifest["files"][name] == asdict(run.folder.measure(name).extent)


@dataclass
class Demonstration:
    """The model of a queue, which says of itself that it is one for demonstrations."""

    inner: Any
    name: str = "embedded"
    provider: str = "embedded"

    def metadata(self) -> Mapping[str, Json]:
        return {**self.inner.metadata(), "demonstration": True}

    def connection(self) -> Mapping[str, Json]:
        return {}

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        said: AssistantMessage = await self.inner.chat(messages, tools, call)
        return said

    async def close(self) -> None:
        """Nothing is held open."""


@pytest.mark.parametrize(("wrapped", "labels"), [(True, ["embedded demonstration model"]), (False, [])])
async def test_numbers_of_a_model_for_demonstrations_are_labelled_on_any_data(
    wrapped: bool, labels: list[str], config: RunConfig, fakes: Any
) -> None:
    server = ModelSettings(base_url="http://127.0.0.1:9/v1")
    run = prepare(replace(config, solvers=("mllm",), model="openai:mock", model_settings=server, limit=1))
    queue = fakes.QueueModel(["Answer: (A)"])
    model = Demonstration(queue) if wrapped else queue
    await execute(replace(run, resources=replace(run.resources, model=model)), lambda *_: None)
    assert run.folder.manifest["labels"] == labels
    (scored,) = score_run(run.folder, ScoreOptions())
    assert list(scored.labels) == labels


async def test_a_line_that_changes_while_a_command_runs_is_told_of_by_the_next(
    config: RunConfig, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manifest measures the bytes that were written, not the file as it is at the end."""
    run = prepare(config)
    path = run.folder.path / "chance" / "attempts.jsonl"

    def damage(solver: str, finished: int, total: int) -> None:
        if finished == total:
            path.write_bytes(path.read_bytes().replace(b'"id":"', b'"id":7"', 1))

    await execute(run, damage)
    capsys.readouterr()
    await asked(config)
    assert "attempts.jsonl, line 1: not an Attempt" in capsys.readouterr().err
    assert len(run.folder.attempts("chance")) == 6
