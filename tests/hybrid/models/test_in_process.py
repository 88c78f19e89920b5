"""A real, tiny vision language model in this process: it calls a tool, reads the result and answers."""

import asyncio
import io
import json
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from hybrid.config import ModelSettings
from hybrid.core.errors import Outage, UsageError, WeightsError
from hybrid.core.images import ImageStore, picture_of
from hybrid.core.messages import AssistantMessage, ImagePart, Message, ToolCall, ToolMessage, user_message
from hybrid.core.types import ImageRef
from hybrid.models import CallKey, ModelRefused
from hybrid.models.in_process.chat import HuggingFaceChat
from hybrid.models.in_process.generation import ChatInput, GeneratedReply, Loaded, verify
from tests.tables import cases

Make = Callable[..., HuggingFaceChat]


def colour(store: ImageStore, name: str, side: int, red: int) -> ImageRef:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (red, 0, 0)).save(buffer, "PNG")
    return ImageRef(name, store.put(buffer.getvalue(), name))


def opening(store: ImageStore, question: str = "Which side is red?") -> Message:
    return user_message([question, colour(store, "img:1", 64, 255)])


def result(store: ImageStore, call: ToolCall) -> ToolMessage:
    return ToolMessage(call.id, call.name, ("Image 1 magnified.", ImagePart(colour(store, "img:1.1", 32, 250))))


@pytest.fixture
async def make(tiny_vlm: Path, store: ImageStore) -> AsyncIterator[Make]:
    chats: list[HuggingFaceChat] = []

    def open_one(folder: Path = tiny_vlm, **settings: Any) -> HuggingFaceChat:
        chats.append(HuggingFaceChat(f"hf:{folder}", ModelSettings(**{"device": "cpu", **settings}), store))
        return chats[-1]

    yield open_one
    for model in chats:
        await model.close()


def changed(tiny_vlm: Path, folder: Path, **files: Callable[[dict[str, Any]], Any]) -> Path:
    """Return a copy of the tiny model with some of its JSON files changed."""
    shutil.copytree(tiny_vlm, folder)
    for stem, change in files.items():
        path = folder / f"{stem}.json"
        data = json.loads(path.read_text())
        change(data)
        path.write_text(json.dumps(data))
    return folder


@pytest.mark.parametrize("template", [True, False])
async def test_it_calls_reads_and_answers(
    template: bool, make: Make, tiny_vlm: Path, tiny_words: ModuleType, store: ImageStore, tmp_path: Path
) -> None:
    folder = tiny_vlm
    if not template:
        folder = changed(tiny_vlm, tmp_path / "bare", tokenizer_config=lambda data: data.pop("response_template"))
    model = make(folder)
    tools = (tiny_words.tool(),)
    messages = [opening(store)]
    reply = await model.chat(messages, tools, CallKey("q"))
    read = ToolCall("text00000", "magnify", tiny_words.ARGUMENTS, "Hermes")
    assert reply.calls == (ToolCall("c00000000", "magnify", tiny_words.ARGUMENTS) if template else read,)
    assert reply.text == ""
    assert reply.finish_reason == ("tool_calls" if template else "stop")
    messages += [reply, result(store, reply.calls[0])]
    final = await model.chat(messages, tools, CallKey("q", 0, 1))
    assert final.text == "The red side is left.\nAnswer: (A)"
    assert not final.calls
    assert final.finish_reason == "stop"
    assert final.images_sent is not None
    assert [(image.name, image.sent.width) for image in final.images_sent] == [("img:1", 64), ("img:1.1", 32)]
    assert final.usage is not None
    assert reply.usage is not None
    assert final.usage.input_tokens > reply.usage.input_tokens > 16


async def test_a_call_between_special_tokens_is_read_and_they_are_no_text(
    make: Make, tiny_vlm: Path, tiny_words: ModuleType, store: ImageStore, tmp_path: Path
) -> None:
    def special(data: dict[str, Any]) -> None:
        token = {"id": data["model"]["vocab"]["tool"], "content": "tool", "special": True}
        data["added_tokens"].append({**data["added_tokens"][0], **token})

    folder = changed(
        tiny_vlm, tmp_path / "special", tokenizer=special, tokenizer_config=lambda data: data.pop("response_template")
    )
    model = make(folder)
    reply = await model.chat([opening(store)], (tiny_words.tool(),), CallKey("q"))
    assert reply.calls == (ToolCall("text00000", "magnify", tiny_words.ARGUMENTS, "Hermes"),)
    plain = await make(folder, max_tokens=3).chat([opening(store)], (), CallKey("q"))
    assert "tool" not in plain.text


async def test_a_reply_that_is_cut_off_leaves_no_call(make: Make, tiny_words: ModuleType, store: ImageStore) -> None:
    model = make(max_tokens=6)
    reply = await model.chat([opening(store)], (tiny_words.tool(),), CallKey("q"))
    assert not reply.calls
    assert reply.finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.output_tokens == 6


@pytest.mark.parametrize("batch", [1, 4])
async def test_many_at_once_get_what_each_gets_alone(
    batch: int, make: Make, tiny_words: ModuleType, store: ImageStore
) -> None:
    model = make(extra={"batch": batch})
    tools = (tiny_words.tool(),)
    call = ToolCall("c", "magnify", tiny_words.ARGUMENTS)
    histories = []
    for question in tiny_words.QUESTIONS:
        first = opening(store, question)
        histories += [[first], [first, AssistantMessage("", (call,)), result(store, call)]]
    alone = [await model.chat(history, tools, CallKey("q")) for history in histories]
    together = await asyncio.gather(*(model.chat(history, tools, CallKey("q")) for history in histories))
    for item, other in zip(alone, together, strict=True):
        assert (item.text, item.calls, item.usage) == (other.text, other.calls, other.usage)
    assert [bool(reply.calls) for reply in alone] == [True, False, True, False]


class OutOfMemoryError(RuntimeError):
    """The error of torch when a device is full, recognised by this name."""


async def test_a_batch_that_finds_no_memory_is_halved_and_one_that_finds_none_alone_ends_by_itself(
    make: Make, tiny_words: ModuleType, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes, generate = list[int](), Loaded.generate

    def short(self: Loaded, inputs: Sequence[ChatInput], settings: ModelSettings, seed: int) -> list[GeneratedReply]:
        sizes.append(len(inputs))
        if len(inputs) > 2 or "too large" in str(inputs):
            raise OutOfMemoryError("CUDA out of memory")
        return generate(self, inputs, settings, seed)

    monkeypatch.setattr(Loaded, "generate", short)
    model = make(extra={"batch": 5})
    questions = [*tiny_words.QUESTIONS, *tiny_words.QUESTIONS, "too large"]

    async def ask_all() -> list[bool]:
        values = (model.chat([opening(store, question)], (tiny_words.tool(),), CallKey("q")) for question in questions)
        return [isinstance(item, Outage) for item in await asyncio.gather(*values, return_exceptions=True)]

    assert await ask_all() == [*[False] * 4, True]
    assert max(sizes[1:]) < 5
    sizes.clear()
    assert await ask_all() == [*[False] * 4, True]
    assert max(sizes) <= 2
    monkeypatch.setattr(Loaded, "likelihood", lambda *_: (_ for _ in ()).throw(OutOfMemoryError("CUDA out of memory")))
    with pytest.raises(Outage, match="no memory left"):
        await model.likelihood([opening(store)], ["A", "B"])
    assert model.metadata()["batch"] == 5


async def test_one_that_gives_up_does_not_hold_up_the_others(
    make: Make, tiny_words: ModuleType, store: ImageStore
) -> None:
    model = make()
    tasks = [
        asyncio.create_task(model.chat([opening(store)], (tiny_words.tool(),), CallKey(f"q{n}"))) for n in range(4)
    ]
    # After one step of the loop all requests have started, and none can have finished, because no weights are loaded
    # yet.
    await asyncio.sleep(0)
    tasks[1].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[1], asyncio.CancelledError)
    assert all(isinstance(reply, AssistantMessage) and reply.calls for reply in (results[0], results[2], results[3]))


async def test_sampling_is_repeatable_by_call(make: Make, store: ImageStore) -> None:
    model = make(temperature=5.0, max_tokens=12, seed=1)

    async def say(question: str) -> str:
        return (await model.chat([opening(store)], (), CallKey(question))).text

    first = [await say(f"q{n}") for n in range(4)]
    assert [await say(f"q{n}") for n in range(4)] == first
    assert len(set(first)) > 1


async def test_likelihoods_of_letters(make: Make, tiny_words: ModuleType, store: ImageStore) -> None:
    model = make()
    call = ToolCall("c", "magnify", tiny_words.ARGUMENTS)
    history = [opening(store), AssistantMessage("", (call,)), result(store, call)]
    reply = await model.likelihood(history, ["A", "B", "C"], prefix="The red side is left.\nAnswer: (")
    likelihood = reply.likelihood
    assert likelihood is not None
    assert list(likelihood) == ["A", "B", "C"]
    assert sum(likelihood.values()) == pytest.approx(1.0)
    assert likelihood["A"] > 0.99
    assert reply.text.endswith("Answer: (A)")
    with pytest.raises(ValueError, match="at least two"):
        await model.likelihood(history, ["A", "A"])


async def test_a_template_without_tools_gets_the_text_protocol(
    make: Make, tiny_vlm: Path, tiny_words: ModuleType, store: ImageStore, tmp_path: Path
) -> None:
    folder = changed(tiny_vlm, tmp_path / "plain")
    template = "{% for m in messages %}{{ m.role }}: {% if m.content is string %}{{ m.content }}{% else %}"
    template += "{% for c in m.content %}{{ '<image>' if c.type == 'image' else c.text }}{% endfor %}{% endif %}\n"
    (folder / "chat_template.jinja").write_text(template + "{% endfor %}assistant: ")
    tools = (tiny_words.tool(),)
    described = await make(folder).chat([opening(store)], tools, CallKey("q"))
    plain = await make(folder).chat([opening(store)], (), CallKey("q"))
    assert described.usage is not None
    assert plain.usage is not None
    assert described.usage.input_tokens > plain.usage.input_tokens + 50
    with pytest.raises(ModelRefused, match="--tool-calling native"):
        await make(folder, tool_calling="native").chat([opening(store)], tools, CallKey("q"))


async def test_an_incomplete_checkpoint_is_refused(
    make: Make, tiny_vlm: Path, store: ImageStore, tmp_path: Path
) -> None:
    from safetensors.torch import load_file, save_file

    folder = changed(tiny_vlm, tmp_path / "damaged")
    tensors = load_file(folder / "model.safetensors")
    gone = sorted(tensors)[0]
    del tensors[gone]
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(WeightsError, match="missing keys"):
        await make(folder).chat([opening(store)], (), CallKey("q"))
    deeper = changed(tiny_vlm, tmp_path / "deeper", config=lambda data: data["text_config"].update(num_hidden_layers=3))
    with pytest.raises(WeightsError, match="missing keys"):
        await make(deeper).chat([opening(store)], (), CallKey("q"))
    (folder / "model.safetensors").unlink()
    with pytest.raises(WeightsError, match="does not load"):
        await make(folder).chat([opening(store)], (), CallKey("q"))


async def test_absent_weights_are_named(make: Make, store: ImageStore, tmp_path: Path) -> None:
    model = make(tmp_path / "nowhere")
    with pytest.raises(WeightsError, match="nowhere"):
        await model.chat([opening(store)], (), CallKey("q"))
    with pytest.raises(WeightsError, match="nowhere"):
        model.metadata()


@pytest.mark.parametrize(
    ("configuration", "temperature", "samples"),
    [
        ('{"do_sample": true}', None, {"do_sample": True}),
        ('{"do_sample": false}', None, {"do_sample": False}),
        ('{"max_new_tokens": 9}', None, {"do_sample": False}),
        ("[]", None, {}),
        ("{", None, {}),
        (None, None, {}),
        ('{"do_sample": true}', 0.0, {}),
    ],
)
def test_whether_a_checkpoint_draws_is_saved_if_no_temperature_decides_it(
    configuration: str | None, temperature: float | None, samples: dict[str, bool], store: ImageStore, tmp_path: Path
) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    if configuration is not None:
        (tmp_path / "generation_config.json").write_text(configuration)
    saved = HuggingFaceChat(f"hf:{tmp_path}", ModelSettings(temperature=temperature), store).metadata()
    assert {name: value for name, value in saved.items() if name == "do_sample"} == samples


@pytest.mark.parametrize(*cases(__file__, "test_options_that_it_does_not_have_are_refused"))
def test_options_that_it_does_not_have_are_refused(settings: dict[str, Any], message: str, store: ImageStore) -> None:
    with pytest.raises(UsageError, match=message):
        HuggingFaceChat("hf:x", ModelSettings(**settings), store)


def test_what_is_wrong_with_a_checkpoint_is_listed() -> None:
    verify("fine", {"missing_keys": set(), "mismatched_keys": set(), "unexpected_keys": [], "error_msgs": []})
    with pytest.raises(
        WeightsError, match=r"mismatched keys: b\.weight; unexpected keys: k0, k1, k2, k3, k4 and 2 more"
    ):
        verify("bad", {"mismatched_keys": {("b.weight", (1,), (2,))}, "unexpected_keys": [f"k{n}" for n in range(7)]})


async def test_a_picture_is_decoded_once_for_all_turns_and_questions(
    make: Make, tiny_words: ModuleType, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, decoded = picture_of, []

    def count_decoding(data: bytes, source: str) -> Image.Image:
        decoded.append(source)
        return decode(data, source)

    monkeypatch.setattr("hybrid.core.images.picture_of", count_decoding)
    # A picture for a model never becomes an array on its way.
    monkeypatch.setattr(Image, "fromarray", None)
    model = make()
    messages = [opening(store)]
    for question in ("q1", "q2"):
        reply = await model.chat(messages, (tiny_words.tool(),), CallKey(question))
        await model.chat([*messages, reply, result(store, reply.calls[0])], (), CallKey(question, 0, 1))
    shown = [image.sha256 for image in (colour(store, "img:1", 64, 255).image, colour(store, "img:1.1", 32, 250).image)]
    assert decoded == [sha256[:12] for sha256 in shown]
