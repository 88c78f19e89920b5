"""`hybrid models check` infers how a server resizes pictures from their token counts."""

import base64
import io
import json
import re
from pathlib import Path

import pytest
from PIL import Image

from hybrid.config import ModelSettings
from hybrid.core.images import ImageStore
from hybrid.models.images import Resizing
from hybrid.running.model_check import check_model
from tests.servers import JsonHandler, LocalServer, listening


@pytest.mark.system
@pytest.mark.parametrize(
    ("resizing", "message"),
    [
        (Resizing(28, 3136, 1003520), "frame=resized:28:3136:1003520"),
        (Resizing(28, 3136, 12845056), "frame=resized:28:3136:12845056"),
        (Resizing(32, 65536, 16777216), "frame=resized:32:4096:16777216"),
        (Resizing(14, 784, 200704), "frame=resized:14:784:200704"),
    ],
)
async def test_the_bounds_of_a_server_are_told_by_its_tokens(resizing: Resizing, message: str, tmp_path: Path) -> None:
    order: list[int] = []

    class Handler(JsonHandler):
        def posted(self, body: bytes) -> None:
            data = json.loads(body)
            urls = re.findall(r"data:image/\w+;base64,([\w+/=]+)", json.dumps(data["messages"]))
            sizes = [Image.open(io.BytesIO(base64.b64decode(url))).size for url in urls]
            order.append(max((max(size) for size in sizes), default=0))
            seen = [resizing.size(*size) for size in sizes]
            tokens = sum(across * down // resizing.factor**2 + 2 for across, down in seen)
            text = "(630, 110)" if "red disc" in str(data) else "ready"
            choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
            self.answer({"choices": choices, "usage": {"prompt_tokens": 30 + tokens, "completion_tokens": 3}})

    with listening(LocalServer(Handler)) as server:
        checked = await check_model("openai:k", ModelSettings(base_url=f"{server.url}/v1"), ImageStore(tmp_path))
    (value,) = [item for item in checked.found if item.asked == "pictures at the size at which they are seen"]
    assert value.means.endswith(message)
    # The largest picture comes last and alone.
    assert order[-1] == max(order) == 4096
