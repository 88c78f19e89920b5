#!/usr/bin/env bash
# langchain-core 1.8.3, langchain-anthropic 1.7.10.
#
# Expected: a tool that returns a list of rows gives the model these rows, as JSON.
# Happens: rows with a key `type` whose value is "text", "image", "file" or "document" are taken for blocks of a
# message. langchain-anthropic then sends no row of the type "text" at all. The same rows with the key `kind` arrive
# complete.
# Matters: layout detectors and OCR engines use this key for the class of a region. On a page that contains only text
# the model gets an empty tool result and no error, which looks like "nothing found".
# Seen on 2026-11-30:
#   key "kind": all boxes reach the request
#   key "type": [] is the whole result
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-core==1.8.3 langchain-anthropic==1.7.10
"$dir/env/bin/python" - <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

requests = []


class Server(BaseHTTPRequestHandler):
    """Keeps each request; answers "done"."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        reply = {
            "id": "m1",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [{"type": "text", "text": "done"}],
            "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        text = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@tool
def layout(key: str) -> list:
    """Find the regions of a page."""
    return [{key: "text", "box": [10, 20, 300, 40]}, {key: "text", "box": [10, 60, 300, 400]}]


server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
model = ChatAnthropic(model="m", base_url=f"http://127.0.0.1:{server.server_port}", api_key="none", max_tokens=10)
for key in ("kind", "type"):
    call = {"name": "layout", "args": {"key": key}, "id": "c1", "type": "tool_call"}
    model.invoke([HumanMessage("What is on the page?"), AIMessage("", tool_calls=[call]), layout.invoke(call)])
    content = requests[-1]["messages"][-1]["content"][0]["content"]
    if key == "kind":
        assert "[10, 60, 300, 400]" in json.dumps(content), content
        print('key "kind": all boxes reach the request')
    else:
        print('key "type":', json.dumps(content), "is the whole result")
        assert content == [], "changed: rows with the key `type` reach the request"
PY
