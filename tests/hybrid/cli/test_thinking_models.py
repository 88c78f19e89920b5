"""`hybrid run` with the controller on servers of thinking models, which require their thoughts back, stream, or refuse
options.

Each server refuses a conversation without its own reasoning, like the server that it is named after.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.finished_runs import Command, Words
from tests.servers import JsonHandler, LocalServer, listening

pytestmark = pytest.mark.system

# A response: a body or the pieces of a stream, and the status.
Says = tuple[Any, int]

THOUGHT = "I want to look. " * 2_000
SIGNED = {"google": {"thought_signature": "c2ln"}}
BOX = '{"image": "img:1", "box": {"x0": 0, "y0": 0, "x1": 40, "y1": 40}}'


def call(**more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": BOX}, **more}


def completion(reason: str = "stop", **message: Any) -> dict[str, Any]:
    messages = {"role": "assistant", "content": None, **message}
    usage = {"prompt_tokens": 500, "completion_tokens": 9}
    return {"choices": [{"index": 0, "message": messages, "finish_reason": reason}], "usage": usage}


def pieces(*deltas: Any, reason: str = "stop") -> list[Any]:
    values = [{"delta": {}, "finish_reason": reason}]
    usage = {"choices": [], "usage": {"prompt_tokens": 500, "completion_tokens": 9}}
    return [*({"choices": [{"delta": delta}]} for delta in deltas), {"choices": values}, usage]


def refused(text: str, status: int = 400) -> Says:
    return {"error": {"message": text, "type": "invalid_request_error", "code": None}}, status


def deepseek(request: dict[str, Any], earlier: list[dict[str, Any]]) -> Says:
    if any(item.get("tool_calls") and item.get("reasoning_content") != THOUGHT for item in earlier):
        return refused("The `reasoning_content` in the thinking mode must be passed back to the API.")
    if earlier or "tools" not in request:
        return completion(content="Answer: (A)", reasoning_content="Seen."), 200
    return completion("tool_calls", reasoning_content=THOUGHT, tool_calls=[call()]), 200


def gemini(request: dict[str, Any], earlier: list[dict[str, Any]]) -> Says:
    if any(item.get("extra_content") != SIGNED for text in earlier for item in text.get("tool_calls", ())):
        return refused("Function call is missing a thought_signature in functionCall parts.")
    if earlier or "tools" not in request:
        return completion(content="Answer: (A)"), 200
    return completion("tool_calls", tool_calls=[call(extra_content=SIGNED)]), 200


def dashscope(request: dict[str, Any], earlier: list[dict[str, Any]]) -> Says:
    if not request["stream"]:
        return refused("This model only support stream mode, please enable the stream parameter to access the model.")
    if any(item.get("tool_calls") and item.get("reasoning_content") != THOUGHT for item in earlier):
        return refused("the thoughts are lost")
    if earlier or "tools" not in request:
        return pieces({"content": "Answer:"}, {"content": " (A)"}), 200
    payload = {"index": 0, **call(), "function": {"name": "crop", "arguments": BOX[:20]}}
    rest = {"index": 0, "function": {"arguments": BOX[20:]}}
    thoughts = [{"reasoning_content": THOUGHT[:9]}, {"reasoning_content": THOUGHT[9:]}]
    return pieces(*thoughts, {"tool_calls": [payload]}, {"tool_calls": [rest]}, reason="tool_calls"), 200


def older(request: dict[str, Any], earlier: list[dict[str, Any]]) -> Says:
    if "max_completion_tokens" in request:
        return refused("Unrecognized request argument supplied: max_completion_tokens")
    return gemini(request, earlier)


def speechless(request: dict[str, Any], earlier: list[dict[str, Any]]) -> Says:
    return completion("length", content="", reasoning_content=THOUGHT), 200


def groq(request: dict[str, Any], earlier: list[dict[str, Any]]) -> Says:
    if any("reasoning_content" in item for item in earlier):
        return refused("'messages.2' : property 'reasoning_content' is unsupported, did you mean 'role'?")
    if earlier or "tools" not in request:
        return completion(content="Answer: (A)"), 200
    return completion("tool_calls", reasoning_content=THOUGHT, tool_calls=[call()]), 200


@pytest.fixture
def run_questions(command: Command, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Run four questions on a server; return the finished command, the manifest and the attempts."""

    def run(server: Callable[..., Says], *words: str) -> tuple[Any, dict[str, Any], list[dict[str, Any]]]:
        class Handler(JsonHandler):
            def posted(self, body: bytes) -> None:
                data = json.loads(body)
                text, status = server(data, [item for item in data["messages"] if item["role"] == "assistant"])
                if not isinstance(text, list):
                    return self.answer(text, status)
                events = "".join(f"data: {json.dumps(entry)}\n\n" for entry in [*text]) + "data: [DONE]\n\n"
                return self.answer(events.encode(), headers={"content-type": "text/event-stream"})

        out = tmp_path / "run"
        with listening(LocalServer(Handler)) as listener:
            result = command(
                *("run", "blink", "--data", "sample", "--limit", "4", "--task", "Jigsaw", "--solver", "controller"),
                *("--model", "openai:m", "--base-url", f"{listener.url}/v1", "--tools", "crop", "--allow", "blind"),
                *("--out", str(out), *words),
            )
        attempts = out / "controller" / "attempts.jsonl"
        lines = attempts.read_text().splitlines() if attempts.exists() else []
        manifest = out / "manifest.json"
        record = json.loads(manifest.read_text()) if manifest.exists() else {}
        return result, record, [json.loads(line) for line in lines]

    return run


@pytest.mark.parametrize(
    ("server", "words", "terms"),
    [
        (deepseek, (), []),
        (gemini, (), []),
        (dashscope, (), ["replies are requested as streams"]),
        (older, ("--max-tokens", "50"), ["max_tokens instead of max_completion_tokens"]),
        (groq, ("--reasoning", "drop"), []),
    ],
)
def test_a_server_that_checks_is_given_what_it_wants(
    server: Callable[..., Says], words: Words, terms: list[str], run_questions: Callable[..., Any]
) -> None:
    result, manifest, attempts = run_questions(server, *words)
    assert result.code == 0, result.err
    assert "4/4" in result.out
    steps = [step for attempt in attempts for step in attempt["steps"][0]]
    assert sum(step["kind"] == "tool" and not step["fault"] for step in steps) == 4
    value = manifest["connection"][-1].get("terms", [])
    assert [words in line for words, line in zip(terms, value, strict=True)] == [True] * len(terms)
    assert result.err.count("from now on") == len(terms)
    thoughts = [step["data"]["reasoning"] for step in steps if "reasoning" in step.get("data", {})]
    assert bool(thoughts) == (server in (deepseek, dashscope, groq))
    assert all(len(thought) < 9_000 for thought in thoughts)
    assert ("reasoning" in manifest["identity"]["model"]) == ("drop" in words)


@pytest.mark.parametrize(
    ("server", "words", "message"),
    [
        (groq, (), "does not accept reasoning_content in the form in which it was sent; --reasoning drop"),
        (deepseek, ("--reasoning", "drop"), "requires the reasoning that --reasoning drop leaves out"),
        (dashscope, ("--stream", "off"), "only streams, which --stream off does not allow"),
    ],
)
def test_what_cannot_go_on_ends_with_the_option_that_allows_it(
    server: Callable[..., Says], words: Words, message: str, run_questions: Callable[..., Any]
) -> None:
    result, _, attempts = run_questions(server, *words)
    assert (result.code, attempts) == (2, [])
    assert message in result.err


def test_a_reply_that_is_all_reasoning_says_so_with_the_remedy(run_questions: Callable[..., Any]) -> None:
    result, manifest, attempts = run_questions(speechless, "--max-tokens", "50")
    (line,) = manifest["notices"]
    assert "controller, 4 of 4 questions: the reply is all reasoning: it ended at the token limit; raise" in line
    assert line in result.err
    replies = [attempt["exchanges"][0]["reply"] for attempt in attempts]
    assert [(reply["text"], reply["outcome"]) for reply in replies] == [("", "unparsed")] * 4
