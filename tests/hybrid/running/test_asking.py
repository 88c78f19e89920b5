"""How a run asks a model: what the manifest says about it, what is stored, and what a resumed run uses."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config import ModelSettings, RunConfig
from hybrid.core.errors import UsageError
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import run_until_complete

KEYED = "http://user:a-secret-pass-word-1@127.0.0.1:9/v1?key=another-secret-2"


@pytest.fixture
def config(tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """Configuration of a run on three questions with one picture each."""
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    folder = fakes.blink_folder(tmp_path / "blink", 0, 3)
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1")
    return RunConfig(
        "blink", ("caption",), model="openai:words", model_settings=settings, data=str(folder), out=tmp_path / "run"
    )


def with_models(run: ResolvedRun, model: Any, captioner: Any = None) -> ResolvedRun:
    """Return the run with these models, which take over the facts of the models that they replace."""
    for fake, current in ((model, run.resources.model), (captioner, run.resources.captioner)):
        if fake is not None and current is not None:
            fake.metadata = current.metadata
    return replace(run, resources=replace(run.resources, model=model, captioner=captioner))


def go(run: ResolvedRun) -> Any:
    return asyncio.run(run_until_complete(run, lambda *_: None, lambda _: None))


def test_the_captioner_is_part_of_what_a_run_is_and_its_secrets_are_nowhere(config: RunConfig, fakes: Any) -> None:
    second = replace(config, captioner="openai:eyes", captioner_settings=ModelSettings(base_url=KEYED))
    run = prepare(second)
    assert run.captioner is run.resources.captioner
    text = run.identity["captioner"]
    assert isinstance(text, dict)
    assert (text["model"]["model"], sorted(text)) == ("openai:eyes", ["model", "prompt"])  # type: ignore[index,call-overload]
    captioner = fakes.QueueModel([f"it reads {KEYED}", "cat 2", "cat 3"], name="openai:eyes")
    captioner.connection = run.resources.captioner.connection  # type: ignore[union-attr]
    go(with_models(run, fakes.QueueModel(["Answer: (A)"] * 3), captioner))
    manifest = run.folder.manifest
    assert manifest["solvers"]["caption"]["captions"] == text
    assert [item["base_url"] for item in manifest["connection"]] == ["http://127.0.0.1:9/v1"]
    for path in run.folder.path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"a-secret-pass-word-1" not in data
            assert b"another-secret-2" not in data
    with pytest.raises(UsageError, match=r"captioner.model.model"):
        go(prepare(replace(second, captioner="openai:other")))


def test_a_captioner_that_cannot_be_had_is_named_by_its_setting(config: RunConfig, monkeypatch: Any) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match="--setting caption-model=openai:eyes: "):
        prepare(replace(config, captioner="openai:eyes"))
    assert "caption-model" in prepare(replace(config, captioner="openai:eyes"), dry=True).missing[0]


def write_texts(folder: Path, *numbers: int) -> Path:
    path = folder / "texts.jsonl"
    rows = [{"id": f"val_Spatial_Relation_{n}", "text": f"text {n}"} for n in numbers]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_supplied_texts_are_named_by_hash_and_counted(config: RunConfig, tmp_path: Path, fakes: Any) -> None:
    plain = replace(config, solvers=("mllm",))
    path = write_texts(tmp_path, 1, 2)
    with pytest.raises(UsageError, match=r"no text for 1 of 3 questions \(val_Spatial_Relation_3\)"):
        prepare(replace(plain, context=path))
    run = prepare(replace(plain, context=path, context_missing="without"))
    model = fakes.QueueModel(["Answer: (A)"] * 3)
    run = with_models(replace(run, resources=replace(run.resources, config=replace(run.config, concurrency=1))), model)
    assert go(run).answered == 3
    assert [f"text {n}" in messages[0].text for n, (messages, _, _) in enumerate(model.calls, 1)] == [True, True, False]
    manifest = run.folder.manifest
    assert manifest["supplied_texts"] == {"with": 2, "without": 1}
    assert "supplied text, some questions without" in manifest["labels"]
    assert set(manifest["identity"]["context"]) == {"sha256", "missing"}
    # Changed texts make it a different run, which is refused here.
    write_texts(tmp_path, 1, 2, 3)
    with pytest.raises(UsageError, match=r"context\.sha256"):
        go(prepare(replace(plain, context=path, context_missing="without")))
    assert prepare(replace(plain, context=path, out=tmp_path / "other")).without_text == ()


def test_a_file_of_other_questions_is_refused(config: RunConfig, tmp_path: Path) -> None:
    path = write_texts(tmp_path, 77)
    with pytest.raises(UsageError, match="none of the ids in this file"):
        prepare(replace(config, context=path, context_missing="without"))
