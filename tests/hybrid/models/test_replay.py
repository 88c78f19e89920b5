import json
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config import ModelSettings
from hybrid.core.errors import DataError, NotRecorded, UsageError
from hybrid.core.images import ImageStore
from hybrid.core.types import Attempt, Exchange, Json, Kind, Prompt, Reply, Step
from hybrid.log.attempts import attempt_line
from hybrid.log.folder import RunFolder
from hybrid.models import CallKey, ChatModel, open_model
from hybrid.models.base import prompt_sha256
from hybrid.models.replay import read_lines
from hybrid.tool import Tool
from tests.tables import cases


def replay(folder: Path) -> ChatModel:
    return open_model(f"replay:{folder}", ModelSettings(), ImageStore(folder / "images"))


def blink(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    (folder / name).write_text(json.dumps({"val": rows, "test": []}))


def lines(folder: Path, *rows: Any) -> None:
    (folder / "calls.jsonl").write_text("\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows))


def row(idx: str, text: Any) -> dict[str, Any]:
    return {"idx": idx, "answer": "(A)", "full_prediction": text, "prediction": "(B)"}


async def reply_text(model: ChatModel, key: CallKey) -> str:
    return (await model.chat([], (), key)).text


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines(tmp_path, {"id": "a", "text": "(A)"})
    monkeypatch.setattr("hybrid.models.replay.MAX_BYTES", 10)
    with pytest.raises(OSError, match="more than 10 bytes") as refused:
        replay(tmp_path)
    assert str(refused.value.filename) == str(tmp_path / "calls.jsonl")


@pytest.mark.parametrize(
    "key",
    [
        CallKey("val_Jigsaw_2"),
        CallKey("val_Jigsaw_1#r1"),
        CallKey("val_Jigsaw_1", ask=1),
        CallKey("val_Jigsaw_1", call=1),
    ],
)
async def test_an_id_alone_answers_the_first_call_of_the_plain_question_only(tmp_path: Path, key: CallKey) -> None:
    blink(tmp_path, "Jigsaw.json", [row("val_Jigsaw_1", "(A)")])
    with pytest.raises(NotRecorded, match=f"{key.question}.*ask {key.ask}, call {key.call}"):
        await replay(tmp_path).chat([], (), key)


@pytest.mark.parametrize("mapping", [{"prompt": "Which?"}, {"prompt_sha256": prompt_sha256("Which?")}])
async def test_a_recorded_prompt_must_match(tmp_path: Path, mapping: dict[str, str]) -> None:
    lines(tmp_path, {"id": "q1", "text": "(A)", **mapping})
    model = replay(tmp_path)
    assert await reply_text(model, CallKey("q1", prompt_sha256=prompt_sha256("Which?"))) == "(A)"
    with pytest.raises(NotRecorded, match="another prompt"):
        await model.chat([], (), CallKey("q1", prompt_sha256=prompt_sha256("Which one?")))


async def test_tools_are_not_recorded(tmp_path: Path, crop_tool: Tool) -> None:
    blink(tmp_path, "Jigsaw.json", [row("val_Jigsaw_1", "(A)")])
    with pytest.raises(NotRecorded, match="cannot call tools"):
        await replay(tmp_path).chat([], (crop_tool,), CallKey("val_Jigsaw_1"))


def test_two_recordings_of_one_call_are_refused(tmp_path: Path) -> None:
    blink(tmp_path, "Jigsaw.json", [row("val_Jigsaw_1", "(A)")])
    blink(tmp_path, "Jigsaw 2.json", [row("val_Jigsaw_1", "(B)")])
    with pytest.raises(DataError, match=r"Jigsaw\.json.*val_Jigsaw_1.*Jigsaw 2\.json"):
        replay(tmp_path)


@pytest.mark.parametrize(*cases(__file__, "test_a_bad_line_is_named"))
def test_a_bad_line_is_named(tmp_path: Path, line: Any, message: str) -> None:
    lines(tmp_path, line)
    with pytest.raises(DataError, match=message):
        replay(tmp_path)


@pytest.mark.parametrize(*cases(__file__, "test_a_bad_blink_file_is_named"))
def test_a_bad_blink_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "Jigsaw.json").write_text(content)
    with pytest.raises(DataError, match=message):
        replay(tmp_path)


def test_a_folder_without_recordings_is_refused_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="folder not found"):
        replay(tmp_path / "absent")
    (tmp_path / "GPT4o").mkdir()
    (tmp_path / "README.md").write_text("text")
    with pytest.raises(UsageError, match=r"no recordings.*GPT4o"):
        replay(tmp_path)


def test_facts_hold_hashes_and_no_path(tmp_path: Path) -> None:
    folder = tmp_path / "outputs"
    folder.mkdir()
    blink(folder, "Jigsaw.json", [row("val_Jigsaw_1", "(A)")])
    facts = replay(folder).metadata()
    assert facts["model"] == "replay:outputs"
    assert facts["recordings"] == 1
    assert str(tmp_path) not in json.dumps(facts)
    blink(folder, "Jigsaw.json", [row("val_Jigsaw_1", "(B)")])
    assert replay(folder).metadata()["files_sha256"] != facts["files_sha256"]


async def test_a_run_of_our_own_replays_by_ask_and_call_with_its_prompts(tmp_path: Path) -> None:
    def said_to(text: str, *steps: Step) -> Exchange:
        return Exchange(Prompt((text,), Kind.CHOICE), Reply("not the model's words", steps=steps))

    calls: dict[str, Json] = {"tool_calls": [{"tool": "crop", "args": {}}]}
    exchanges = (
        said_to("first", Step("model", "m", "one"), Step("rule", "r", "x"), Step("model", "m", "two")),
        said_to("second", Step("model", "m", "", data=calls), Step("model", "m", "after a tool")),
    )
    run = RunFolder(tmp_path)
    attempt = Attempt("q#s2", exchanges, 1.0)
    journal = run.journal("mllm")
    journal.append(b'{"id":"q9","error":"away"}', attempt_line(attempt))
    journal.close()
    model = replay(tmp_path / "mllm")
    assert model.metadata()["recordings"] == 2
    first = prompt_sha256("first")
    assert await reply_text(model, CallKey("q#s2", 0, 0, first)) == "one"
    assert await reply_text(model, CallKey("q#s2", 0, 1, first)) == "two"
    with pytest.raises(NotRecorded, match="another prompt"):
        await reply_text(model, CallKey("q#s2", 0, 0, prompt_sha256("other")))
    with pytest.raises(NotRecorded, match="no recording"):
        await reply_text(model, CallKey("q#s2", 1, 1, prompt_sha256("second")))
    with (tmp_path / "mllm" / "attempts.jsonl").open("a") as file:
        file.write("{}\n")
    with pytest.raises(DataError, match=r"attempts\.jsonl, line 3: not an Attempt"):
        replay(tmp_path / "mllm")


places = st.tuples(st.text(string.printable.strip(), min_size=1), st.integers(0, 3), st.integers(0, 3))


@given(st.dictionaries(places, st.text(), max_size=6))
def test_any_recording_survives_the_file(calls: dict[tuple[str, int, int], str]) -> None:
    rows = [{"id": q, "ask": a, "call": c, "text": text} for (q, a, c), text in calls.items()]
    data = "\n".join(json.dumps(row) for row in rows).encode()
    assert {line.place: line.text for line in read_lines(Path("calls.jsonl"), data)} == calls


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    text = ""
    results = []
    try:
        results = list(read_lines(Path("calls.jsonl"), data))
    except DataError as error:
        text = str(error)
    assert text.startswith("calls.jsonl, line ") or all(isinstance(recording.text, str) for recording in results)


@pytest.mark.shared_data
@pytest.mark.parametrize("who", ["GPT4V", "GPT4o", "QwenVLMax", "llava-v1.6-34b"])
async def test_the_published_outputs_replay_verbatim(shared_data: Path, who: str) -> None:
    folder = shared_data / "blink_outputs" / who
    model = replay(folder)
    facts = model.metadata()
    assert facts["recordings"] == 3807
    for path in sorted(folder.glob("*.json")):
        for rows in json.loads(path.read_text()).values():
            for item in rows:
                assert await reply_text(model, CallKey(item["idx"])) == (item["full_prediction"] or "")
