"""How a model is asked, in a run: what the manifest says of it, what is kept, and what a run that goes on finds."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.benchmarks.blink import BENCHMARK
from hybrid.config import ModelSettings, RunConfig
from hybrid.errors import Outage, UsageError
from hybrid.images import OUR_JOINT
from hybrid.log.folder import RunFolder
from hybrid.prompts import FORMAT_LINES, REASONED, REASONING, Wording
from hybrid.running.replies import REPLIES
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import carry_out, execute
from hybrid.types import Kind, Prompt

KEYED = "http://user:a-secret-pass-word-1@127.0.0.1:9/v1?key=another-secret-2"


@pytest.fixture
def config(tmp_path: Path, fakes: Any, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """Three questions of one picture each."""
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home"))
    folder = fakes.blink_folder(tmp_path / "blink", 0, 3)
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1")
    return RunConfig(
        "blink", ("caption",), "openai:words", model_settings=settings, data=str(folder), out=tmp_path / "run"
    )


@pytest.fixture
def second(config: RunConfig) -> RunConfig:
    return replace(config, captioner="openai:eyes", captioner_settings=ModelSettings(base_url=KEYED))


def with_models(run: ResolvedRun, model: Any, captioner: Any = None) -> ResolvedRun:
    """The run with these models, under the facts of its own."""
    for fake, own in ((model, run.resources.model), (captioner, run.resources.captioner)):
        if fake is not None and own is not None:
            fake.metadata = own.metadata
    return replace(run, resources=replace(run.resources, model=model, captioner=captioner))


def go(run: ResolvedRun) -> Any:
    return asyncio.run(carry_out(run, lambda *_: None, lambda _: None))


def test_captions_are_kept_and_a_run_that_goes_on_asks_for_none_twice(second: RunConfig, fakes: Any) -> None:
    captioner = fakes.QueueModel(["cat 1", "cat 2", Outage("away")], name="openai:eyes")
    end = go(with_models(prepare(replace(second, concurrency=1)), fakes.QueueModel(["Answer: (A)"] * 2), captioner))
    assert [(one.id, one.error) for one in end.failures] == [("val_Spatial_Relation_3", "away")]
    assert captioner.closed
    captioner = fakes.QueueModel(["cat 3"], name="openai:eyes")
    run = with_models(prepare(second), fakes.QueueModel(["Answer: (A)"]), captioner)
    assert (end := go(run)).failures == ()
    assert end.answered == 1
    kept = [json.loads(line) for line in (run.folder.path / REPLIES).read_text().splitlines()]
    assert [row["text"] for row in kept] == ["cat 1", "cat 2", "cat 3"]
    assert {row["image"] for row in kept} == {question.images[0].sha256 for question in run.sound}
    usages = [one.exchanges[0].reply.usage.model_calls for one in run.folder.attempts("caption")]
    assert usages == [2, 2, 2]
    # Another solver of the run is shown the same captions, and pays for none.
    more = replace(second, solvers=("mllm",), images="separate")
    run = with_models(prepare(more), fakes.QueueModel(["Answer: (A)"] * 3), fakes.QueueModel([]))
    assert go(run).answered == 3


def test_the_captioner_is_part_of_what_a_run_is_and_its_secrets_are_nowhere(second: RunConfig, fakes: Any) -> None:
    run = prepare(second)
    assert run.captioner is run.resources.captioner
    told = run.identity["captioner"]
    assert isinstance(told, dict)
    assert (told["model"]["model"], sorted(told)) == ("openai:eyes", ["model", "prompt"])  # type: ignore[index,call-overload]
    captioner = fakes.QueueModel([f"it reads {KEYED}", "cat 2", "cat 3"], name="openai:eyes")
    captioner.connection = run.resources.captioner.connection  # type: ignore[union-attr]
    go(with_models(run, fakes.QueueModel(["Answer: (A)"] * 3), captioner))
    manifest = run.folder.manifest
    assert manifest["solvers"]["caption"]["captions"] == told
    assert [one["base_url"] for one in manifest["connection"]] == ["http://127.0.0.1:9/v1"]
    for path in run.folder.path.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert b"a-secret-pass-word-1" not in data
            assert b"another-secret-2" not in data
    with pytest.raises(UsageError, match=r"captioner.model.model"):
        go(prepare(replace(second, captioner="openai:other")))


def test_without_a_second_model_the_own_one_describes_and_keeps(config: RunConfig, fakes: Any) -> None:
    run = prepare(config)
    assert run.captioner is run.resources.model
    assert "captioner" not in run.identity
    model = fakes.QueueModel(["cat 1", "Answer: (A)", "cat 2", "Answer: (A)", "cat 3", "Answer: (A)"])
    run = with_models(replace(run, resources=replace(run.resources, config=replace(config, concurrency=1))), model)
    assert go(run).answered == 3
    kept = (run.folder.path / REPLIES).read_text().splitlines()
    assert sorted(json.loads(line)["text"] for line in kept) == ["cat 1", "cat 2", "cat 3"]


def test_no_solver_that_shows_captions_makes_no_file(config: RunConfig, fakes: Any) -> None:
    run = prepare(replace(config, solvers=("mllm",)))
    assert run.captioner is None
    go(with_models(run, fakes.QueueModel(["Answer: (A)"] * 3)))
    assert not (run.folder.path / REPLIES).exists()
    assert "captions" not in run.folder.manifest["solvers"]["mllm"]


def test_a_captioner_that_cannot_be_had_is_named_by_its_setting(config: RunConfig, monkeypatch: Any) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match="--setting caption-model=openai:eyes: "):
        prepare(replace(config, captioner="openai:eyes"))
    dry = prepare(replace(config, captioner="openai:eyes"), dry=True)
    assert "caption-model" in dry.missing[0]


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
    # Other texts are another run.
    write_texts(tmp_path, 1, 2, 3)
    with pytest.raises(UsageError, match=r"context\.sha256"):
        go(prepare(replace(plain, context=path, context_missing="without")))
    other = prepare(replace(plain, context=path, out=tmp_path / "other"))
    assert other.without_text == ()


def test_a_file_of_other_questions_is_refused(config: RunConfig, tmp_path: Path) -> None:
    path = write_texts(tmp_path, 77)
    with pytest.raises(UsageError, match="not one of its ids"):
        prepare(replace(config, context=path, context_missing="without"))


@pytest.mark.parametrize("reasoning", ["first", "none"])
def test_reasoning_changes_the_closing_words_alone(
    config: RunConfig, reasoning: Any, fakes: Any, tmp_path: Path
) -> None:
    def sent(config: RunConfig) -> tuple[Any, ...]:
        model = fakes.QueueModel(["Answer: (A)"])
        run = prepare(replace(config, solvers=("mllm",), limit=1))
        asyncio.run(execute(with_models(run, model), lambda *_: None))
        parts: tuple[Any, ...] = model.calls[0][0][0].parts
        return parts

    plain = sent(config)
    asked = sent(replace(config, reasoning=reasoning, out=tmp_path / reasoning))
    assert asked == (*plain[:-1], REASONING[reasoning], plain[-1])
    identities = [RunFolder(path).manifest["identity"] for path in (tmp_path / "run", tmp_path / reasoning)]
    assert identities[1]["prompts"] == {**identities[0]["prompts"], "reasoning": REASONING[reasoning]}
    # The budget of a reply is the same.
    assert identities[0]["model"] == identities[1]["model"]


@pytest.mark.parametrize("kind", list(Kind))
def test_only_answers_are_reasoned_about(kind: Kind) -> None:
    prompt = Prompt(("?",), kind)
    for reasoning in (None, "first", "none"):
        closing = Wording(True, reasoning).closing(prompt)  # type: ignore[arg-type]
        expected = [REASONING[reasoning]] if reasoning and kind in REASONED else []  # type: ignore[index]
        assert closing == (*expected, *filter(None, [FORMAT_LINES[kind]]))


def test_pictures_are_joined_as_the_card_says_and_the_manifest_too(
    config: RunConfig, fakes: Any, tmp_path: Path
) -> None:
    folder = fakes.blink_folder(tmp_path / "puzzles", 1, 0)
    config = replace(config, solvers=("mllm",), images="concat", data=str(folder), image_labels=False)
    model = fakes.QueueModel(["Answer: (A)"])
    run = with_models(prepare(config), model)
    go(run)
    (sheet,) = [part.ref.image for part in model.calls[0][0][0].parts if not isinstance(part, str)]
    # A puzzle of 96 x 96 and two pieces of 48 x 48, 10 pixels between them.
    assert (sheet.width, sheet.height) == (96 + 10 + 48 + 10 + 48, 96)
    pixels = run.service.store.pixels(sheet)
    assert (pixels[:, 96:106] == 0).all()
    assert (pixels[:24, 106:] == 0).all()
    assert pixels[24:72, 106:154].any()
    assert run.folder.manifest["solvers"]["mllm"]["joint"] == {"gap_px": 10, "rgb": [0, 0, 0], "at": "middle"}
    assert BENCHMARK.card.joint != OUR_JOINT
