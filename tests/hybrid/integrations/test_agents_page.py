"""The examples of `docs/agents.md` work with a local graph and a local server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

import hybrid
from hybrid.log.folder import RunFolder
from hybrid.scoring.attempt_facts import calls_of
from tests.runnable import Page
from tests.servers import JsonHandler, LocalServer, listening

PAGE = Page.read("docs/agents.md")
WRITTEN_AT = "http://127.0.0.1:8000/v1"
CALL = {"image": "img:1", "labels": ["A", "B"]}


class AsksDepth(BaseChatModel):
    """With tools it calls depth on the first image and answers with its output; without tools it answers (A)."""

    with_tools: bool = False

    @property
    def _llm_type(self) -> str:
        return "asks-depth"

    def bind_tools(self, tools: Any, **kwargs: Any) -> "AsksDepth":
        return AsksDepth(with_tools=True)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        last: Any = messages[-1]
        aimessage = AIMessage("Answer: (A)")
        if self.with_tools and last.type == "human":
            aimessage = AIMessage("", tool_calls=[{"id": "1", "name": "depth", "args": CALL}])
        elif last.type == "tool":
            aimessage = AIMessage(f"Answer: ({nearest(last.artifact['data'])})")
        return ChatResult(generations=[ChatGeneration(message=aimessage)])


def nearest(data: Any) -> str:
    """Return the letter of the nearest point in an output of depth."""
    return str(max(data["points"], key=lambda point: point["depth_0_1"])["label"])


class Serves(JsonHandler):
    """Answers a chat completion like an agent: the response also contains the messages of a call to its own tool."""

    def posted(self, body: bytes) -> None:
        (message,) = json.loads(body)["messages"]
        assert self.path == "/v1/chat/completions"
        assert any(part.get("image_url", {}).get("url", "").startswith("data:image/") for part in message["content"])
        call = {
            "id": "1",
            "type": "function",
            "function": {"name": "zoom", "arguments": json.dumps({"image": "img:1"})},
        }
        payload = {"role": "assistant", "content": "Answer: (B)"}
        messages = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "1", "content": "closer"},
            payload,
        ]
        self.answer({"choices": [{"index": 0, "message": payload}], "messages": messages})


@pytest.fixture
def address() -> Iterator[str]:
    with listening(LocalServer(Serves)) as server:
        yield f"{server.url}/v1"


@pytest.mark.system
def test_the_page_runs_as_it_is_printed(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"chat_model": AsksDepth()}
    # Blocks for Inspect are run in a separate environment, by tests/hybrid/exporting/test_inspect.py.
    for block in (item for item in PAGE.of("python") if item.needs is None):
        exec(compile(block.text.replace(WRITTEN_AT, address), PAGE.name, "exec"), names)  # noqa: S102 - the page is ours
    rows = hybrid.compare("runs/agent").results
    mapping = {(row.section, row.quantity): row for row in rows if not row.group and not row.metric}
    evidence = {name: int(row.value or 0) for (section, name), row in mapping.items() if section == "evidence"}
    # All eight answers are judged by their tool output, because each agrees with it.
    assert sum(evidence[name] for name in ("correct adoption", "confirmed", "over-trust", "wrong from both")) == 8
    assert evidence["correct adoption"] > 0
    assert not any(evidence[name] for name in ("no call", "wrong tool", "no finding", "unread", "ignored evidence"))
    gain = {name: row.value for (section, name), row in mapping.items() if section == "decomposition"}
    assert gain["gain"] == pytest.approx(gain["gain with a call"] - gain["harm with a call"])
    assert (evidence["correct adoption"] / 8, evidence["over-trust"] / 8) == (
        gain["gain with a call"],
        gain["harm with a call"],
    )
    answers = RunFolder(Path("runs/served")).recorded("served").by_id
    assert {exchange.reply.text for answer in answers.values() for exchange in answer.exchanges} == {"Answer: (B)"}
    values = [calls_of(exchange) for entry in answers.values() for exchange in entry.exchanges]
    assert [(call.tool, call.images) for (call,) in values] == [("zoom", ("img:1",))] * 8
