#!/usr/bin/env bash
# langchain-nvidia-ai-endpoints 1.5.0, langchain 1.5.2, langgraph 1.2.24, with a server that is a part of this file and
# speaks chat completions with and without streaming.
#
# Expected: an agent's second request contains the model's tool call before the tool's result, as the chat completions
# API requires, whether the agent's run is streamed or not.
# Happens: `ChatNVIDIA` sends the calls of an earlier message only from `additional_kwargs`. Its own replies have calls
# there only if they were not streamed. With `agent.stream(stream_mode="messages")` the model gets its own call back as
# an empty text, followed by the result of a call that is in no message. The same happens to a call in a message that is
# written by hand (an example in a prompt) or by another provider's model. There is no error and no warning.
# Matters: the model sees an answer without its question to the tool (which point, which region). A server that checks
# the order refuses the request. With a server that does not, only the arm with tools gets a lower score.
# Seen on 2026-11-30:
#   invoke:          assistant calls ['depth'], then tool: 'nearer: A'
#   stream messages: assistant calls [], then tool: 'nearer: A'
#   by hand:         assistant calls [], then tool: 'nearer: A'
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-nvidia-ai-endpoints==1.5.0 langchain==1.5.2 langgraph==1.2.24
"$dir/env/bin/python" -W ignore - <<'PY'
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_nvidia_ai_endpoints import ChatNVIDIA

MODEL = "meta/llama-3.1-8b-instruct"
CALL = {"id": "c1", "type": "function", "function": {"name": "depth", "arguments": '{"x": 3}'}}
requests = []


class Server(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def reply(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.reply("application/json", json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}).encode())

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        requests.append(request["messages"])
        asks = request["messages"][-1]["role"] != "tool"
        message = {"role": "assistant", "content": "" if asks else "A"}
        if asks:
            message["tool_calls"] = [{**CALL, "index": 0}] if request.get("stream") else [CALL]
        head = {"id": "1", "created": 1, "model": MODEL}
        choice = {"index": 0, "finish_reason": "tool_calls" if asks else "stop"}
        if request.get("stream"):
            event = json.dumps({**head, "object": "chat.completion.chunk", "choices": [{**choice, "delta": message}]})
            self.reply("text/event-stream", f"data: {event}\n\ndata: [DONE]\n\n".encode())
        else:
            body = {**head, "object": "chat.completion", "choices": [{**choice, "message": message}]}
            self.reply("application/json", json.dumps(body).encode())


@tool
def depth(x: int) -> str:
    """Say which of two points is nearer."""
    return "nearer: A"


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
model = ChatNVIDIA(base_url=f"http://127.0.0.1:{server.server_port}/v1", model=MODEL, api_key="none")
agent = create_agent(model, [depth])
question = HumanMessage("Which point is nearer?")


def calls(label):
    *_, assistant, result = requests[-1]
    assert result["role"] == "tool"
    names = [call["function"]["name"] for call in assistant.get("tool_calls") or ()]
    print(f"{label:<16} assistant calls {names}, then tool: {result['content']!r}")
    return names


agent.invoke({"messages": [question]})
invoked = calls("invoke:")
for _ in agent.stream({"messages": [question]}, stream_mode="messages"):
    pass
streamed = calls("stream messages:")
example = AIMessage("", tool_calls=[{"name": "depth", "args": {"x": 3}, "id": "c1"}])
model.invoke([question, example, ToolMessage("nearer: A", tool_call_id="c1")])
written = calls("by hand:")
assert invoked == ["depth"], "changed: a reply that was not streamed loses its call"
assert streamed == written == [], "changed: the calls are sent"
PY
