"""The tiny model behind `transformers serve`, through the openai client: a real server on the true path."""

import importlib.util
import io
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from PIL import Image

from hybrid.config import ModelSettings
from hybrid.images import ImageStore
from hybrid.messages import ImagePart, Message, ToolMessage, user_message
from hybrid.models import CallKey, ChatModel, ModelRefused, open_model
from hybrid.types import ImageRef

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("fastapi", "uvicorn", "accelerate")),
        reason="needs transformers[serving]",
    ),
]


@pytest.fixture(scope="module")
def served(tiny_vlm: Path, servers: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of `transformers serve`, once it answers."""
    with servers.serving(tiny_vlm, tmp_path_factory.mktemp("hf")) as address:
        yield address


def colour(store: ImageStore, name: str, side: int, red: int) -> ImageRef:
    buffer = io.BytesIO()
    Image.new("RGB", (side, side), (red, 0, 0)).save(buffer, "PNG")
    return ImageRef(name, store.put(buffer.getvalue(), name))


async def agent(model: ChatModel, tiny_words: ModuleType, store: ImageStore) -> list[Any]:
    """Question, call, result, answer: the two replies of the model."""
    tools = (tiny_words.tool(),)
    messages: list[Message] = [user_message(["Which side is red?", colour(store, "img:1", 64, 255)])]
    try:
        first = await model.chat(messages, tools, CallKey("q"))
        parts = ("Image 1 magnified.", ImagePart(colour(store, "img:1.1", 32, 250)))
        messages += [first, ToolMessage(first.calls[0].id, "magnify", parts)]
        return [first, await model.chat(messages, tools, CallKey("q", 0, 1))]
    finally:
        await model.close()


async def test_a_served_model_and_one_in_this_process_say_the_same_with_the_same_tokens(
    served: str, tiny_vlm: Path, tiny_words: ModuleType, store: ImageStore
) -> None:
    settings = ModelSettings(base_url=served, seed=0, timeout_s=60)
    over_http = await agent(open_model(f"openai:{tiny_vlm}", settings, store), tiny_words, store)
    here = await agent(open_model(f"hf:{tiny_vlm}", ModelSettings(seed=0, device="cpu"), store), tiny_words, store)
    for one, other in zip(over_http, here, strict=True):
        assert one.text == other.text
        assert [(c.name, c.args) for c in one.calls] == [(c.name, c.args) for c in other.calls]
        assert (one.usage, one.images_sent) == (other.usage, other.images_sent)
    assert over_http[0].calls[0].args == tiny_words.ARGUMENTS
    assert over_http[1].text == "The red side is left.\nAnswer: (A)"


async def test_a_model_that_is_not_served_is_refused_with_what_the_server_said(served: str, store: ImageStore) -> None:
    model = open_model("openai:nobody/nothing", ModelSettings(base_url=served, retries=0), store)
    try:
        with pytest.raises(ModelRefused, match="nobody/nothing"):
            await model.chat([user_message(["Which?"])], (), CallKey("q"))
    finally:
        await model.close()
