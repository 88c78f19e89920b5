"""Messages to a model, word for word. With `--format-line off --image-labels off` they contain only the data's text.

Every text here is written out by hand; a picture is `<N>`, numbered in the order of the question's own pictures.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from hybrid.benchmarks.actiview.sample import write as write_actiview
from hybrid.benchmarks.hvsbench.sample import schema
from hybrid.config import ModelSettings, RunConfig
from hybrid.core.messages import AssistantMessage, Message, parts_of
from hybrid.models.base import CallKey
from hybrid.models.images import arrange
from hybrid.running.resolve import ResolvedRun, prepare
from hybrid.running.run import ask_run
from hybrid.tool import Tool
from tests.fakes import Scripted
from tests.image_bytes import saved
from tests.tables import stored

Heard = tuple[str, list[str]]


@dataclass
class Listener(Scripted):
    """Returns queued replies to a question and records what was sent: the messages, with pictures by number."""

    plan: ResolvedRun
    replies: Mapping[str, Sequence[str]]
    calls_by_question: dict[str, list[list[Heard]]] = field(default_factory=dict)
    name: str = "listener"
    provider: str = "listener"

    async def chat(self, messages: Sequence[Message], tools: Sequence[Tool], call: CallKey) -> AssistantMessage:
        question = next(item for item in self.plan.sound if item.id == call.question)
        numbers = {image.sha256: f"<{place}>" for place, image in enumerate(question.images, 1)}
        calls = self.calls_by_question.setdefault(call.question, [])
        calls.append([_plain(message, numbers) for message in arrange(messages, 8)])
        queued = self.replies.get(call.question, ("A",))
        return AssistantMessage(queued[min(len(calls), len(queued)) - 1])


def _plain(message: Message, numbers: Mapping[str, str]) -> Heard:
    return message.role, [
        part if isinstance(part, str) else numbers[part.ref.image.sha256] for part in parts_of(message)
    ]


async def sent(
    benchmark: str, folder: Path, replies: Mapping[str, Sequence[str]] | None = None, **changes: Any
) -> dict[str, list[list[Heard]]]:
    """Return the messages sent to the MLLM alone, by question and call."""
    server = ModelSettings(base_url="http://127.0.0.1:9/v1")
    config = RunConfig(benchmark, ("mllm",), model="openai:mock", model_settings=server, data=str(folder))
    config = replace(config, format_line=False, image_labels=False, out=folder / "run")
    plan = prepare(replace(config, **changes))
    listener = Listener(plan, replies or {})
    failures = await ask_run(replace(plan, resources=replace(plan.resources, model=listener)), lambda *_: None)
    assert failures == ()
    return listener.calls_by_question


def expected(name: str) -> dict[str, list[list[Heard]]]:
    """Return the calls of each question, one user message each."""
    return {key: [[("user", parts)] for parts in calls] for key, calls in stored(__file__, name).items()}


def picture(shade: int) -> bytes:
    return saved(Image.new("RGB", (40, 30), (shade, 90, 190)))


@pytest.fixture
def blink(tmp_path: Path, fakes: Any) -> Path:
    fakes.blink_folder(tmp_path / "data", 1, 1)
    return tmp_path / "data"


async def test_blink_sends_the_text_and_then_the_pictures(blink: Path) -> None:
    assert await sent("blink", blink) == expected("blink")


async def test_names_and_the_format_line_are_all_that_is_ours(blink: Path) -> None:
    outputs = await sent("blink", blink, tasks=("Spatial_Relation",), image_labels=True, format_line=True)
    assert outputs == expected("format_line")


@pytest.fixture
def mvp_bench(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    yes_no = stored(__file__, "row yes_no")
    choice = stored(__file__, "row choice")
    plain = {**choice, "question_id": 9, "type": "mcq-cross"}
    for name, shade in {"Single_Images/7_s": 1, "Cross_Images/7_concat": 2}.items():
        path = root / "Images" / f"{name}.jpg"
        path.parent.mkdir(parents=True)
        path.write_bytes(picture(shade))
    (root / "all_questions.json").write_text(f"{json.dumps(yes_no)}\n{json.dumps(plain)}\n")
    (root / "mcq_questions.json").write_text(f"{json.dumps(choice)}\n")
    return root


async def test_mvp_bench_sends_the_text_and_one_picture(mvp_bench: Path) -> None:
    assert await sent("mvp_bench", mvp_bench) == expected("mvp_bench")


async def test_mm_sap_sends_the_picture_the_options_and_after_a_refusal_four_of_them(tmp_path: Path) -> None:
    row = {
        "question": "What colour is it?",
        "options": ["red", "green", "blue", "white", "Sorry, I can't help with it"],
        "answer": "C",
        "image": {"bytes": picture(1)},
    }
    folder = tmp_path / "data"
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([row]), folder / "BasicVisQA.parquet")
    outputs = await sent("mm_sap", folder, {"basic_0001#s0": ("C", "A")})
    assert {"basic_0001#s0": outputs["basic_0001#s0"]} == expected("mm_sap")


@pytest.fixture
def actiview(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    write_actiview(root, ("object_attr",), 1, 5)
    path = root / "asset" / "data.json"
    content = json.loads(path.read_text())
    content["data"][0] |= {"question": "What colour is the ball?", "options": ["red", "blue"], "answer": 1}
    path.write_text(json.dumps(content))
    return root


async def test_actiview_sends_the_lines_and_then_the_parts_chosen(actiview: Path) -> None:
    assert (await sent("actiview", actiview, {"actiview0001": ("1, 4", "B")})) == expected("actiview")


async def test_hvsbench_sends_the_question_and_the_picture(tmp_path: Path) -> None:
    texts = {
        "Q2": ("How many salient objects are there in the image?", "3"),
        "Q5": ("Which object is more salient? [A] the green circle [B] the red circle", "A"),
    }
    rows = [
        {
            "index": number,
            "image": {"bytes": picture(number), "path": None},
            "question": question,
            "question_type": task,
            "answer": answer,
            "real_image_path": f"{number}.jpg",
            "origin_dataset": "made",
        }
        for number, (task, (question, answer)) in enumerate(texts.items())
    ]
    path = tmp_path / "data" / "data" / "test-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=schema()), path)
    assert await sent("hvsbench", tmp_path / "data") == expected("hvsbench")
