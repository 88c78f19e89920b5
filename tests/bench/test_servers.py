"""The trained network on real servers: `uv run pytest -m slow tests/bench/test_servers.py` takes minutes per server."""

import json
from pathlib import Path

import pytest

from bench.servers import (
    BLUE,
    CACHE,
    CROP,
    GREEN,
    RED,
    absent,
    after_call,
    ask,
    count_outcomes,
    result,
    run,
    served,
    user,
)

VLLM = ("--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--reasoning-parser", "qwen3")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["vllm", "llama", "litellm"])
def test_a_real_server_thinks_calls_streams_and_sees_and_the_controller_runs_on_it(name: str, tmp_path: Path) -> None:
    if missing := absent(name, CACHE):
        pytest.skip(f"{', '.join(missing)} is absent in {CACHE}: `python -m bench.servers {name}` makes it")
    with served(name, CACHE, tmp_path, *(VLLM if name == "vllm" else ())) as server:
        for options in ({}, {"stream": True}):
            message = ask(server, [user(RED)], tools=[CROP], **options)["choices"][0]["message"]
            [call] = message["tool_calls"]
            assert json.loads(call["function"]["arguments"])["images"] == ["img:1"]
            assert "closer" in (message.get("reasoning") or message["reasoning_content"])
        for part, colour in ((GREEN, "green"), (BLUE, "blue")):
            answer = ask(server, [user(part)])["choices"][0]["message"]["content"]
            assert answer.strip().startswith(f"Seen: {colour}")
        assert "tool_calls" not in ask(server, after_call(result("done")), tools=[CROP])["choices"][0]["message"]
        assert run(server, tmp_path / "run", "--limit", "4").startswith("exit 0")
    output = count_outcomes(tmp_path / "run")
    assert (output["questions"], output["answered"]) == (4, 4)
    assert output["tool calls"] >= 4
    assert output["replies with reasoning"] == output["model calls"]
