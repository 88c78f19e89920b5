"""A resumed run: its data are read only if needed, and the manifest records the number of questions."""

import shutil
from dataclasses import replace

import pytest

from hybrid.config import RunConfig
from hybrid.core.images import home
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run


@pytest.fixture
def config(config: RunConfig) -> RunConfig:
    return replace(config, solvers=("chance",), model=None)


async def finish_run(config: RunConfig) -> ResolvedRun:
    run = prepare(config)
    assert await ask_run(run, lambda *_: None) == ()
    return run


def forget_images() -> None:
    """Empty the store; reading the data fills it again."""
    shutil.rmtree(home() / "images")


def images() -> int:
    return sum(path.is_file() for path in (home() / "images").rglob("*"))


def leave_open(run: ResolvedRun, count: int) -> None:
    """Remove the last answers, as a kill does before they are written."""
    path = run.folder.path / "chance" / "attempts.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-count]))
    manifest = run.folder.manifest
    del manifest["files"]["chance/attempts.jsonl"]
    run.folder.write_manifest(manifest)


async def test_an_open_question_has_its_images(config: RunConfig) -> None:
    run = await finish_run(config)
    previous = images()
    leave_open(run, 1)
    forget_images()
    await finish_run(config)
    assert images() == previous


@pytest.mark.parametrize("change", ["limit", "code", "damage"])
async def test_data_is_read_again_where_its_questions_may_be_others(config: RunConfig, change: str) -> None:
    run = await finish_run(config)
    path = run.folder.path / "questions.jsonl"
    content, manifest = path.read_bytes(), run.folder.manifest
    assert manifest["taken"]["limit"] is None
    if change == "code":
        manifest["taken"]["code"] = "of another reader"
        run.folder.write_manifest(manifest)
    if change == "damage":
        path.write_bytes(content.replace(b"(A)", b"(B)", 1))
    forget_images()
    await finish_run(replace(config, limit=4) if change == "limit" else config)
    assert images() > 0
    assert path.read_bytes() == content
    assert run.folder.manifest["taken"]["limit"] is None
