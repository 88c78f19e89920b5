"""Conversations with tool calls as training data, in the ShareGPT format that LLaMA-Factory reads.

    hybrid export RUN/controller --to sharegpt -o data
    llamafactory-cli train ... --dataset_dir data --dataset hybrid

`data/conversations.jsonl` has one row per conversation: `conversations` (`from`: human, function_call, observation,
gpt), `system`, `tools` (JSON text), `images` and the columns of `--to conversations`; `data/dataset_info.json`
describes it. In a text, `<image>` marks the position of an image. The format requires alternating turns (data/README.md
of LLaMA-Factory), so everything between two turns of the model becomes one turn: results of tools that were called
together, and their pictures. Text next to a call is written before the call. The call is then in `<tool_call>`, as
`FunctionFormatter` of LLaMA-Factory expects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from hybrid.core.files import write_atomic
from hybrid.core.messages import AssistantMessage, Message, SystemMessage, ToolMessage, parts_of
from hybrid.core.types import Json
from hybrid.exporting._conversations import FILE, ConversationRow, function_of, write_conversations
from hybrid.exporting._enacted import LeftOut
from hybrid.exporting.base import ExportedRun, Exporter, ExportOptions, Written
from hybrid.models.toolspec import spec
from hybrid.tool import Tool

PLACE = "<image>"
CALL = ("<tool_call>", "</tool_call>")
RESERVED = (PLACE, "<video>", "<audio>", *CALL)  # Words with a meaning in the format, which no text may contain
INFO = "dataset_info.json"
DATASET = "hybrid"  # The name under which `INFO` describes the file


class ShareGpt(Exporter):
    """A folder with one file of rows, its description, and the images."""

    form = "sharegpt"
    about = (
        "tool calls as training data: ShareGPT with image placeholders (.jsonl), for LLaMA-Factory; solvers that "
        "call tools"
    )
    takes = ("only", "max_turns", "allow")

    def export(self, run: ExportedRun, path: Path, options: ExportOptions) -> Written:
        """See `Exporter.export`."""
        output = write_conversations(run, path, options, self.form, _row)
        columns = {"messages": "conversations", "system": "system", "tools": "tools", "images": "images"}
        info = {DATASET: {"file_name": FILE, "formatting": "sharegpt", "columns": columns}}
        write_atomic(path / INFO, json.dumps(info, indent=2).encode() + b"\n")
        return Written((*output.paths, path / INFO), output.notes, output.rows, output.left_out)


def _row(row: ConversationRow, images: list[str]) -> dict[str, Json]:
    messages, tools = row.conversation.messages, row.conversation.tools
    system = "\n".join(message.text for message in messages if isinstance(message, SystemMessage))
    return {
        "conversations": sharegpt_turns(messages, tools),
        "system": system,
        "tools": json.dumps([spec(tool)["function"] for tool in tools], ensure_ascii=False),
        "images": images,
    }


def sharegpt_turns(messages: Sequence[Message], tools: Sequence[Tool]) -> list[dict[str, str]]:
    """Return the turns without the system message, alternating: human or observation, then gpt or function_call.

    Raises:
        LeftOut: a text contains a word that has a meaning in this format.
    """
    turns: list[dict[str, str]] = []
    dialogue = (message for message in messages if not isinstance(message, SystemMessage))
    for model, group in groupby(dialogue, lambda message: isinstance(message, AssistantMessage)):
        between = list(group)
        for message in between:
            if isinstance(message, AssistantMessage):
                turn = {"from": "gpt", "value": _free(message.text)}
                if message.calls:
                    calls = _free(json.dumps([function_of(call, tools) for call in message.calls], ensure_ascii=False))
                    value = f"{turn['value']}\n{CALL[0]}{calls}{CALL[1]}" if turn["value"] else calls
                    turn = {"from": "function_call", "value": value}
                turns.append(turn)
        if model:
            continue
        result = any(isinstance(message, ToolMessage) for message in between)
        parts = [_free(part) if isinstance(part, str) else PLACE for message in between for part in parts_of(message)]
        turns.append({"from": "observation" if result else "human", "value": "\n".join(filter(None, parts))})
    return turns


def _free(text: str) -> str:
    if any(word in text for word in RESERVED):
        raise LeftOut(f"a text contains one of {' '.join(RESERVED)}, which sharegpt reserves")
    return text


EXPORTER = ShareGpt()
