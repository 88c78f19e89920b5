"""Conversations with tool calls as training data: OpenAI messages for TRL and the chat templates of transformers.

    hybrid export RUN/controller --to conversations -o data --only helped

`data/conversations.jsonl` has one row per conversation: `messages`, `tools`, `images`, and `id`, `ask`, `benchmark`,
`split`, `task`, `solver`, `model`, `score`. The content of every message is a list of parts, `{"type": "text", ...}` or
`{"type": "image"}`, so that every row has the same type. `images` lists the images in order, as paths relative to the
file. Arguments are objects, and tool results contain no images: the pictures follow in the next user message, as sent
to the model. This is the format that TRL documents (docs/source/dataset_formats.md, "Tool Calling";
`prepare_multimodal_messages` in trl/data_utils.py counts no image of a tool message).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hybrid.core.messages import AssistantMessage, Message, ToolMessage, parts_of
from hybrid.core.types import Json
from hybrid.exporting._conversations import ConversationRow, function_of, write_conversations
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.models.toolspec import spec
from hybrid.tool import Tool


class Conversations(Exporter):
    """A folder with one file of rows, and the images."""

    form = "conversations"
    about = (
        "tool calls as training data: OpenAI messages with tools and images (.jsonl), for TRL; solvers that call tools"
    )
    takes = ("only", "max_turns", "allow")

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        return write_conversations(run, path, options, self.form, _row)


def _row(row: ConversationRow, images: list[str]) -> dict[str, Json]:
    conversation = row.conversation
    return {
        "messages": [openai_message(message, conversation.tools) for message in conversation.messages],
        "tools": [spec(tool) for tool in conversation.tools],
        "images": images,
    }


def openai_message(message: Message, tools: Sequence[Tool]) -> dict[str, Json]:
    """Return a message with its content as parts; images are placeholders for the row's images, in order."""
    parts: list[Json] = [
        {"type": "text", "text": part} if isinstance(part, str) else {"type": "image"}
        for part in parts_of(message)
        if part != ""
    ]
    # Some chat templates read the first part of every message.
    record: dict[str, Json] = {"role": message.role, "content": parts or [{"type": "text", "text": ""}]}
    if isinstance(message, ToolMessage):
        record |= {"tool_call_id": message.call, "name": message.name}
    if isinstance(message, AssistantMessage) and message.calls:
        record["tool_calls"] = [
            {"id": call.id, "type": "function", "function": function_of(call, tools)} for call in message.calls
        ]
    return record


EXPORTER = Conversations()
