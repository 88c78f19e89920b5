#!/usr/bin/env bash
# langgraph 1.2.24, langchain 1.5.2, langchain-openai 1.7.4. The server, which speaks chat completions with and without
# streaming, is a part of this file.
#
# Expected: an agent treats a reply in the same way whether its run is displayed or not. A reply that was cut at the
# limit of tokens in the middle of a tool call's arguments (`finish_reason` is "length") contains no call that may run.
# Happens: `agent.invoke` and `agent.stream(stream_mode="updates")` put the call among `invalid_tool_calls`.
# `agent.stream(stream_mode="messages")` requests a streamed reply, completes the cut JSON and runs the call: `"right":
# 340`, cut after two digits, is run as 34.
# Matters: vision tools are called with numbers. The crop or point is wrong, but the tool's answer to it looks right,
# and whether this happens depends only on how the run is displayed.
# Seen on 2026-11-30:
#   invoke: 0 calls run
#   stream, updates: 0 calls run
#   stream, messages: crop(left=120, right=34)
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langgraph==1.2.24 langchain==1.5.2 langchain-openai==1.7.4
"$dir/env/bin/python" - <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

CUT = '{"left": 120, "right": 34'  # of {"left": 120, "right": 340}


class Server(BaseHTTPRequestHandler):
    """First a tool call that the limit of tokens cuts, then an answer."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "crop", "arguments": CUT}}
        message, reason = {"role": "assistant", "content": None, "tool_calls": [call]}, "length"
        if any(message["role"] == "tool" for message in body["messages"]):
            message, reason = {"role": "assistant", "content": "B"}, "stop"
        common = {"id": "r1", "created": 1, "model": "m"}
        if body.get("stream"):
            choices = [{"index": 0, "delta": message}], [{"index": 0, "delta": {}, "finish_reason": reason}]
            chunks = [{**common, "object": "chat.completion.chunk", "choices": part} for part in choices]
            text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        else:
            choice = {"index": 0, "message": message, "finish_reason": reason}
            text = json.dumps({**common, "object": "chat.completion", "choices": [choice]})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if body.get("stream") else "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


calls = []


@tool
def crop(left: int, right: int) -> str:
    """Cut out the columns from left to right."""
    calls.append(f"crop(left={left}, right={right})")
    return "a picture"


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
model = ChatOpenAI(model="m", base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none")
agent = create_agent(model, [crop])
question = {"messages": [("user", "What is in the middle?")]}
ways = {
    "invoke": lambda: agent.invoke(question),
    "stream, updates": lambda: list(agent.stream(question, stream_mode="updates")),
    "stream, messages": lambda: list(agent.stream(question, stream_mode="messages")),
}
ran = {}
for name, ask in ways.items():
    calls.clear()
    ask()
    ran[name] = list(calls)
    print(f"{name}:", *(calls or ["0 calls run"]))
assert ran["invoke"] == ran["stream, updates"] == [], "changed: the cut call runs without streaming too"
assert ran["stream, messages"] == ["crop(left=120, right=34)"], "changed: the cut call no longer runs"
PY
