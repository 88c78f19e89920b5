"""The controller's conversation as LangChain's messages, for programs that draw these: Studio, a chat window.

    drawn = [drawn_message(message, store) for message in said]

They are drawn and never sent: a result shows its pictures in its own message, which not every model would see.
"""

from __future__ import annotations

import base64
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from hybrid import messages as ours
from hybrid.images import ImageStore
from hybrid.types import StoredImage

CONTROLLER = "controller"
"""The name under which a user message is drawn that the controller, and no person, wrote."""


def drawn_message(message: ours.Message, store: ImageStore) -> AIMessage | ToolMessage | HumanMessage:
    """A message with the bytes of its images. Raises `DataError` when the store does not hold them."""
    if isinstance(message, ours.AssistantMessage):
        calls: list[Any] = [{"name": call.name, "args": dict(call.args), "id": call.id} for call in message.calls]
        unread: list[Any] = [
            {"name": call.name, "args": call.written, "id": call.id, "error": call.error} for call in message.invalid
        ]
        return AIMessage(message.text, tool_calls=calls, invalid_tool_calls=unread)
    content: list[Any] = [_block(part, store) for part in ours.parts_of(message)]
    if isinstance(message, ours.ToolMessage):
        status: Any = "error" if message.failed else "success"
        return ToolMessage(content, tool_call_id=message.call, name=message.name, status=status)
    return HumanMessage(content, name=CONTROLLER)


def image_block(image: StoredImage, store: ImageStore) -> dict[str, Any]:
    """An image as the block that chat windows draw. Raises `DataError` when the store does not hold it."""
    data = base64.b64encode(store.read(image)).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}


def _block(part: ours.Part, store: ImageStore) -> dict[str, Any]:
    return {"type": "text", "text": part} if isinstance(part, str) else image_block(part.ref.image, store)
