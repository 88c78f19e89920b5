"""Models in this process on `$HYBRID_TEST_DEVICE` give the CPU's results, also after a real shortage of memory."""

import asyncio
import io
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from PIL import Image

from bench._runs import finished
from hybrid.config import ModelSettings, RunConfig
from hybrid.core.errors import Outage
from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, Message, user_message
from hybrid.core.types import ImageRef
from hybrid.models import CallKey
from hybrid.models.in_process.chat import HuggingFaceChat
from hybrid.models.in_process.generation import Loaded
from tests.tables import stored

pytestmark = pytest.mark.gpu

Make = Callable[..., HuggingFaceChat]
TEMPLATE = stored(__file__, "TEMPLATE")
QUESTIONS = ("Which side is red?", "Where is the square?", "Is the left point nearer?", "How many things are there?")


@pytest.fixture(autouse=True)
def exact() -> None:
    """Restore exact float32, because an earlier tool may have enabled TF32."""
    import torch

    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False


@pytest.fixture(scope="module")
def tiny_qwen(device: str, tmp_path_factory: pytest.TempPathFactory, tiny_words: ModuleType) -> Path:
    """Return a Qwen2.5-VL of two layers with random weights, in the published format."""
    import torch
    import transformers

    folder = tmp_path_factory.mktemp("tiny_qwen")
    marks = ["<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>"]
    words = tiny_words.tokenizer([*QUESTIONS, "user assistant"])
    words.add_special_tokens({"additional_special_tokens": marks})
    words.image_token, words.video_token = marks[2:]
    start, _, image, video = words.convert_tokens_to_ids(marks)
    ends = {"eos_token_id": words.eos_token_id, "pad_token_id": words.pad_token_id}
    text = {"vocab_size": len(words), **ends, **stored(__file__, "TEXT")}
    vision = stored(__file__, "VISION")
    torch.manual_seed(0)
    config = transformers.Qwen2_5_VLConfig(
        text_config=text, vision_config=vision, image_token_id=image, video_token_id=video, vision_start_token_id=start
    )
    model = transformers.Qwen2_5_VLForConditionalGeneration(config)
    # With random weights of the usual size, the picture hardly matters.
    for weights in model.parameters():
        weights.data *= 3 if weights.ndim > 1 else 1
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = words.eos_token_id, words.pad_token_id
    model.save_pretrained(folder)
    pictures = transformers.Qwen2VLImageProcessor(min_pixels=56 * 56, max_pixels=112 * 112)
    videos = transformers.Qwen2VLVideoProcessor()
    transformers.Qwen2_5_VLProcessor(pictures, words, videos, chat_template=TEMPLATE).save_pretrained(folder)
    return folder


@pytest.fixture
async def make(tiny_qwen: Path, store: ImageStore) -> AsyncIterator[Make]:
    chats: list[HuggingFaceChat] = []

    def open_one(location: str, **settings: Any) -> HuggingFaceChat:
        model_settings = ModelSettings(**{"device": location, "max_tokens": 24, **settings})
        chats.append(HuggingFaceChat(f"hf:{tiny_qwen}", model_settings, store))
        return chats[-1]

    yield open_one
    for model in chats:
        await model.close()


def conversations(store: ImageStore) -> list[list[Message]]:
    """Questions of different lengths about pictures of different sizes."""
    results = []
    for place, question in enumerate(QUESTIONS * 2):
        buffer = io.BytesIO()
        rng = np.random.default_rng(place)
        Image.fromarray(rng.integers(0, 256, (60 + 20 * place, 90, 3), dtype=np.uint8)).save(buffer, "PNG")
        results.append([user_message([question, ImageRef("img:1", store.put(buffer.getvalue(), "made"))])])
    return results


async def replies(model: HuggingFaceChat, request: list[list[Message]]) -> list[Any]:
    values = (model.chat(item, (), CallKey(f"q{place}")) for place, item in enumerate(request))
    return list(await asyncio.gather(*values, return_exceptions=True))


def text_and_tokens(result: list[Any]) -> list[tuple[str, int]]:
    assert [item for item in result if not isinstance(item, AssistantMessage)] == []
    return [(entry.text, entry.usage.output_tokens) for entry in result]


async def test_greedy_text_is_that_of_the_cpu_alone_and_in_batches(device: str, make: Make, store: ImageStore) -> None:
    request = conversations(store)
    alone = text_and_tokens(await replies(make("cpu"), request))
    assert len(set(alone)) > 1
    assert text_and_tokens(await replies(make(device), request)) == alone
    assert text_and_tokens(await replies(make(device, extra={"batch": 4, "dtype": "float32"}), request)) == alone


async def test_likelihoods_are_those_of_the_cpu(device: str, make: Make, store: ImageStore) -> None:
    request = conversations(store)[0]
    (item, other) = [
        (await make(location).likelihood(request, ["A", "B", "C"])).likelihood for location in ("cpu", device)
    ]
    assert item is not None
    assert item == pytest.approx(other, abs=1e-4)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
async def test_fewer_bits_answer_every_question(device: str, dtype: str, make: Make, store: ImageStore) -> None:
    model = make(device, extra={"batch": 4, "dtype": dtype})
    assert all(tokens for _, tokens in text_and_tokens(await replies(model, conversations(store))))
    likelihood = (await model.likelihood(conversations(store)[0], ["A", "B"])).likelihood
    assert likelihood is not None
    assert sum(likelihood.values()) == pytest.approx(1.0)


async def test_a_real_shortage_halves_the_batch(
    card: str, make: Make, store: ImageStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A real shortage of memory halves the batch: each conversation of a pass takes 100 MB more, and the device has
    memory for three."""
    import torch

    model, sizes, full = make(card, extra={"batch": 8}), list[int](), Loaded.generate

    def generate(self: Loaded, request: Any, *mode: Any) -> Any:
        sizes.append(len(request))
        block = torch.ones(len(request) * 100 * 2**20, dtype=torch.uint8, device=card)
        return full(self, request, *mode) if block[0] else None

    question = conversations(store)
    alone = text_and_tokens(await replies(model, question))
    monkeypatch.setattr(Loaded, "generate", generate)
    torch.cuda.empty_cache()
    total = torch.cuda.get_device_properties(card).total_memory
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 350 * 2**20) / total)
    try:
        assert text_and_tokens(await replies(model, question)) == alone
        assert max(sizes) > 3 >= sizes[-1]
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_allocated() + 50 * 2**20) / total)
        torch.cuda.empty_cache()
        assert {type(reply) for reply in await replies(model, question)} == {Outage}
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert text_and_tokens(await replies(model, question)) == alone


def test_the_embedded_model_gives_sixty_questions_the_answers_of_the_cpu(device: str, tmp_path: Path) -> None:
    def answers(location: str, batch: int) -> dict[str, list[str]]:
        settings = ModelSettings(device=location, extra={"batch": batch})
        out = tmp_path / f"{location.replace(':', '')}-{batch}"
        config = RunConfig(
            "blink", model="embedded", solvers=("mllm",), data="sample", limit=60, out=out, model_settings=settings
        )
        return {
            attempt.id: [exchange.reply.text for exchange in attempt.exchanges]
            for attempt in finished(config).attempts("mllm")
        }

    alone = answers("cpu", 1)
    assert len(alone) == 60
    assert answers(device, 8) == alone
