#!/usr/bin/env bash
# langchain-openai 1.7.4 with a server that speaks chat completions with reasoning, as vLLM (`reasoning`), DeepSeek,
# llama.cpp and SGLang (`reasoning_content`) do. The server is forty lines of this file.
#
# Expected: the reasoning of a reply can be read from the message, and is sent back with that message, as the chat
# templates of reasoning models require between a tool call and its result.
# Happens: both fields are dropped when the reply is read (they are not in `content`, `additional_kwargs` or
# `response_metadata`), so the next request contains the tool call without the thoughts that led to it. There is no
# warning.
# Matters: in a comparison of "with tools" and "without tools", only the arm with tools loses the model's thoughts, at
# each tool call, and its lower score looks like harm done by the tools.
# Seen on 2026-11-28:
#   in the message: nothing; in the next request: ['content', 'role', 'tool_calls']
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-openai==1.7.4
"$dir/env/bin/python" - <<'PY'
import http.server
import json
import threading

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

THOUGHT = "The dog may be left of the tree: look closer."
REPLY = {
    "id": "reply-1", "object": "chat.completion", "created": 1, "model": "local",
    "choices": [{
        "index": 0,
        "finish_reason": "tool_calls",
        "message": {
            "role": "assistant", "content": None, "reasoning": THOUGHT, "reasoning_content": THOUGHT,
            "tool_calls": [{"id": "call-1", "type": "function", "function": {"name": "crop", "arguments": "{}"}}],
        },
    }],
    "usage": {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10},
}
requests = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = json.dumps(REPLY).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
model = ChatOpenAI(model="local", api_key="none", base_url=f"http://127.0.0.1:{server.server_port}/v1")

question = HumanMessage("Where is the dog?")
reply = model.invoke([question])
model.invoke([question, reply, ToolMessage("a crop", tool_call_id="call-1")])

in_message = THOUGHT in repr(reply.model_dump())
sent_back = requests[1]["messages"][1]
print(f"in the message: {'the thought' if in_message else 'nothing'}; in the next request: {sorted(sent_back)}")
assert not in_message, "changed: the message keeps the reasoning"
assert sorted(sent_back) == ["content", "role", "tool_calls"], "changed: the reasoning goes back"
PY
