"""Training data from the controller's conversations are word for word as sent, in the format that TRL documents."""

import asyncio
import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hybrid.cli import cli
from hybrid.config import Limits, ModelSettings, RunConfig, ServiceOptions
from hybrid.core.errors import UsageError
from hybrid.core.images import ImageStore, home
from hybrid.core.messages import AssistantMessage, ToolCall, parts_of
from hybrid.exporting.base import TEST_SPLIT, ExportedRun, ExportOptions
from hybrid.exporting.conversations import EXPORTER
from hybrid.log.folder import RunFolder
from hybrid.running.resolve import prepare
from hybrid.running.run import ask_run
from tests.hybrid.exporting.conversation_runs import BROKEN, SAID, ScriptedRun, check_trl, row_as_sent, sent, write
from tests.tables import cases

ALL = ExportOptions(only="all")
Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def scripted_runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, ScriptedRun]]:
    """A run with native calls and one with calls as text; their images are in `home` next to them."""
    folder = tmp_path_factory.mktemp("scripted")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folder / "home"))
        yield {calling: write(folder / calling, calling) for calling in ("native", "text")}


@pytest.fixture(autouse=True)
def the_home_of_the_runs(
    scripted_runs: dict[str, ScriptedRun], monkeypatch: pytest.MonkeyPatch, hybrid_home: Path
) -> None:
    del hybrid_home  # requested so that the empty home of the test is set first
    monkeypatch.setenv("HYBRID_HOME", str(scripted_runs["native"].path.parents[1] / "home"))


@pytest.fixture
def copied(scripted_runs: dict[str, ScriptedRun], tmp_path: Path) -> Path:
    """A copy of the run with native calls, which a test may change."""
    return Path(shutil.copytree(scripted_runs["native"].path, tmp_path / "copied"))


def exported(run: Path, out: Path, options: ExportOptions = ALL) -> tuple[Rows, Any]:
    export = EXPORTER.export(ExportedRun.at(run), out, options)
    rows = [json.loads(line) for line in (out / "conversations.jsonl").read_text().splitlines()]
    assert export.rows == len(rows)
    return {row["id"]: row for row in rows}, export


@pytest.mark.parametrize(
    *cases(__file__, "test_it_is_so_however_the_model_was_asked"), ids=lambda changes: next(iter(changes.values()))
)
def test_it_is_so_however_the_model_was_asked(changes: dict[str, Any], tmp_path: Path) -> None:
    if changes.pop("context", False):
        ids = [{"id": name, "text": f"Something about {name}."} for name in SAID]
        (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, ids)) + "\n")
        changes |= {"context": tmp_path / "texts.jsonl"}
    path = write(tmp_path, solvers=("controller",), **changes)
    rows, text = exported(path.path, tmp_path / "out")
    names = {name for name in RunFolder(path.path).questions().by_id if name.partition("#")[0] == BROKEN}
    assert set(text.left_out) == {"a tool call that is not a JSON object"}
    assert set(rows) == set(RunFolder(path.path).questions().by_id) - names
    for name, row in rows.items():
        check_trl(row)
        assert row_as_sent(row, tmp_path / "out")[:-1] == sent(path.sent(name))


def test_a_conversation_whose_pictures_were_not_all_kept_is_left_out(tmp_path: Path) -> None:
    rows, text = exported(write(tmp_path, solvers=("controller",), keep_images=1).path, tmp_path / "out")
    assert text.left_out["requests left out older pictures (--keep-pictures)"] == 2
    assert set(rows) == {"generated_val_Jigsaw_2", "generated_val_Jigsaw_3", "generated_val_Relative_Depth_2"}


def test_the_trust_that_a_system_message_quotes_is_read_again(tmp_path: Path) -> None:
    trust = tmp_path / "trust.json"
    measured = write(tmp_path / "first", solvers=("specialist", "mllm")).path
    cli.main(["calibrate", str(measured), "-o", str(trust)], standalone_mode=False)
    path = write(tmp_path / "second", solvers=("controller",), trust=trust, options_as_used={"trust": str(trust)})
    rows, _ = exported(path.path, tmp_path / "out")
    assert "How often each tool was right" in rows["generated_val_Jigsaw_1"]["messages"][0]["content"][0]["text"]
    for name, row in rows.items():
        assert row_as_sent(row, tmp_path / "out")[:-1] == sent(path.sent(name))
    trust.write_text(trust.read_text() + "\n")
    with pytest.raises(UsageError, match="its trust file, which the system message quotes, is missing or has changed"):
        EXPORTER.export(ExportedRun.at(path.path), tmp_path / "again", ALL)


def test_calls_in_text_are_calls_that_fit_the_schemas(scripted_runs: dict[str, ScriptedRun], tmp_path: Path) -> None:
    rows, text = exported(scripted_runs["text"].path, tmp_path / "out")
    assert text.left_out == {"a tool call that is not a JSON object": 1}
    assert set(rows) == set(SAID) - {BROKEN}
    # Leave out the question whose calls name a missing tool, or images that do not exist.
    rows.pop("generated_val_Jigsaw_2")
    for name, row in rows.items():
        check_trl(row)
        schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in row["tools"]}
        calls = [call["function"] for message in row["messages"] for call in message.get("tool_calls", ())]
        assert [call["name"] for call in calls] == [tool for other_text in SAID[name] for tool, _ in other_text.calls]
        for call in calls:
            schema = schemas[call["name"]]
            assert set(schema["required"]) <= set(call["arguments"]) <= set(schema["properties"])
        text_value = row_as_sent(row, tmp_path / "out")
        hashes = [part for _, parts, _, _ in text_value for part in parts if re.fullmatch(r"[0-9a-f]{64}", part)]
        values = [part for _, parts, _, _ in sent(scripted_runs["text"].sent(name)) for part in parts]
        assert hashes == [part for part in values if re.fullmatch(r"[0-9a-f]{64}", part)]


def test_helped_needs_the_model_alone(tmp_path: Path) -> None:
    run = write(tmp_path, solvers=("controller",)).path
    with pytest.raises(UsageError, match=r"--only helped compares .* continue the run with --solver mllm"):
        EXPORTER.export(ExportedRun.at(run), tmp_path / "out", ExportOptions(only="helped"))
    assert not (tmp_path / "out").exists()


def changed(run: Path, **identity: Any) -> ExportedRun:
    """Change these values of the identity in a run's manifest; return the run."""
    folder = RunFolder(run)
    manifest = folder.manifest
    manifest["identity"] |= identity
    folder.write_manifest(manifest)
    return ExportedRun.at(run)


def test_a_published_split_is_refused_by_name(copied: Path, tmp_path: Path) -> None:
    run = changed(copied, data={"kind": "folder", "sha256": "0"})
    with pytest.raises(UsageError, match=r"asked the split val of blink, .* --allow test-split"):
        EXPORTER.export(run, tmp_path / "out", ALL)
    assert not (tmp_path / "out").exists()
    EXPORTER.export(run, tmp_path / "allowed", replace(ALL, allow=(TEST_SPLIT,)))
    assert (tmp_path / "allowed" / "conversations.jsonl").is_file()


@pytest.mark.parametrize(*cases(__file__, "test_a_run_that_gives_no_messages_is_refused"))
def test_a_run_that_gives_no_messages_is_refused(
    copied: Path, tmp_path: Path, identity: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        EXPORTER.export(changed(copied, **identity), tmp_path / "out", ALL)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("key", "reason"), [("texts", "the texts of controller"), ("tools", "the tool depth, and so its")]
)
def test_words_or_tools_that_have_changed_are_refused(copied: Path, tmp_path: Path, key: str, reason: str) -> None:
    folder = RunFolder(copied)
    manifest = folder.manifest
    facts = manifest["solvers"]["controller"]
    if key == "texts":
        facts["texts"] = "0" * 64
    else:
        facts["tools"]["depth"]["code"] = "0" * 12
    folder.write_manifest(manifest)
    with pytest.raises(UsageError, match=reason):
        EXPORTER.export(ExportedRun.at(copied), tmp_path / "out", ALL)


def test_a_solver_without_tools_is_refused(scripted_runs: dict[str, ScriptedRun], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs a solver to which this program offers tools; .* has mllm"):
        EXPORTER.export(ExportedRun.at(scripted_runs["native"].path / "mllm"), tmp_path / "out", ALL)


def test_an_error_of_a_tool_names_no_path_of_the_machine(copied: Path, tmp_path: Path) -> None:
    attempts = copied / "controller" / "attempts.jsonl"
    lines = [json.loads(line) for line in attempts.read_text().splitlines()]
    for step in (step for line in lines for ask in line["steps"] for step in ask):
        if step["kind"] == "tool":
            step |= {"text": "cannot open /mnt/x/weights", "fault": "tool_error", "images": []}
        # A tool that failed drew nothing, so only the question's images were sent.
        sent_images = step["data"].get("images_sent", [])
        step["data"]["images_sent"] = [image for image in sent_images if "." not in image["name"]]
    attempts.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    text = json.dumps(exported(copied, tmp_path / "out")[0])
    assert "cannot open weights" in text
    assert "/mnt/x" not in text


@pytest.mark.parametrize(*cases(__file__, "test_a_trace_that_was_changed_costs_its_row"))
def test_a_trace_that_was_changed_costs_its_row(
    copied: Path, tmp_path: Path, question: str, original: str, replacement: str
) -> None:
    attempts = copied / "controller" / "attempts.jsonl"
    lines = attempts.read_text().splitlines(keepends=True)
    (place,) = (place for place, line in enumerate(lines) if line.startswith(f'{{"id":"{question}"'))
    head, steps, tail = lines[place].partition(',"steps":')
    assert original in tail
    lines[place] = head + steps + tail.replace(original, replacement, 1)
    attempts.write_text("".join(lines))
    rows, text = exported(copied, tmp_path / "out")
    assert any("attempts.jsonl" in note for note in text.notes)
    assert set(rows) == set(SAID) - {BROKEN, question}
    assert text.left_out["the trace does not reproduce the messages"] == 1


def test_a_line_that_cannot_be_read_is_named_and_costs_its_row(copied: Path, tmp_path: Path) -> None:
    attempts = copied / "controller" / "attempts.jsonl"
    lines = attempts.read_text().splitlines(keepends=True)
    lines[0] = lines[0][:200] + "\n"
    attempts.write_text("".join(lines))
    rows, text = exported(copied, tmp_path / "out")
    assert len(rows) == len(SAID) - 2
    assert text.left_out["no answer"] == 1
    assert any("attempts.jsonl, line 1: not an Attempt" in note for note in text.notes)


def test_an_image_that_is_gone_costs_its_rows(
    scripted_runs: dict[str, ScriptedRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(home(), tmp_path / "home2")
    monkeypatch.setenv("HYBRID_HOME", str(tmp_path / "home2"))
    question = RunFolder(scripted_runs["native"].path).questions().by_id["generated_val_Jigsaw_3"]
    ImageStore(home() / "images").path(question.images[0].sha256).unlink()  # type: ignore[union-attr]
    rows, text = exported(scripted_runs["native"].path, tmp_path / "out")
    assert text.left_out["an image is not in the store as it was sent"] == 1
    assert "generated_val_Jigsaw_3" not in rows


def test_where_nothing_is_left_nothing_is_written(scripted_runs: dict[str, ScriptedRun], tmp_path: Path) -> None:
    run = ExportedRun.at(scripted_runs["native"].path)
    with pytest.raises(
        UsageError, match=r"no conversation to write; .*more than 1 turns: 1 .*not wrong without tools: 4"
    ):
        EXPORTER.export(run, tmp_path / "out", ExportOptions(only="helped", max_turns=1))
    assert not (tmp_path / "out").exists()


@pytest.mark.system
@pytest.mark.parametrize(
    "rules", [{"max_pixels": 5_000}, {"media_types": frozenset({"image/png"})}], ids=["size", "type"]
)
def test_the_files_are_the_copies_that_were_sent(rules: dict[str, Any], tmp_path: Path) -> None:
    file = write(tmp_path, **rules)
    rows, _ = exported(file.path, tmp_path / "out")
    encoder = file.client.images
    for name, row in rows.items():
        refs = [part.ref for message in file.sent(name) for part in parts_of(message) if not isinstance(part, str)]
        assert len(refs) == len(row["images"])
        for ref, path in zip(refs, row["images"], strict=True):
            copy, _ = encoder.encoded(ref.image)
            assert hashlib.sha256((tmp_path / "out" / path).read_bytes()).hexdigest() == copy.sha256
            with Image.open(tmp_path / "out" / path) as picture:
                assert picture.width * picture.height <= rules.get("max_pixels", picture.width * picture.height)


@pytest.mark.system
def test_every_ask_is_a_conversation_and_tool_calls_of_earlier_ones_count(tmp_path: Path, fakes: Any) -> None:
    settings = ModelSettings(base_url="http://127.0.0.1:9/v1")
    crop = AssistantMessage("", (ToolCall("1", "crop", {"images": ["img:1"]}),))
    model = fakes.QueueModel([crop, "Answer: 1", "Answer: (B)"])
    plan = prepare(
        RunConfig(
            "actiview",
            ("controller",),
            model="openai:mock",
            model_settings=settings,
            data="sample",
            tasks=("counting",),
            limit=1,
            settings={"mode": "zoom"},
            tools=("crop",),
            service=ServiceOptions("classical"),
            limits=Limits(tool_calls=1),
            out=tmp_path / "run",
        )
    )
    plan = replace(plan, resources=replace(plan.resources, model=model))
    assert asyncio.run(ask_run(plan, lambda *_: None)) == ()
    assert EXPORTER.export(ExportedRun.at(tmp_path / "run"), tmp_path / "out", ALL).left_out == {}
    first, second = map(json.loads, (tmp_path / "out" / "conversations.jsonl").read_text().splitlines())
    assert (first["id"], first["ask"], second["ask"]) == (second["id"], 0, 1)
    assert [len(first["tools"]), len(second["tools"])] == [1, 0]
    assert [message["role"] for message in first["messages"]][-3:] == ["tool", "user", "assistant"]
    assert first["score"] == second["score"]
