#!/usr/bin/env bash
# langchain-google-genai 4.4.3, with a server that is a part of this file.
#
# Expected: the results of two calls of one tool reach Gemini as two answers that can be distinguished, each with its
# picture after its text, as in the message. The API has a field for a call's id, and `error` for a failed call.
# Happens: each picture is moved in front of the answer to which it belongs. The answer of a tool that returns only a
# picture is an empty list, ids are left out, and a result with `status="error"` is sent as `output`.
# Matters: a tool that crops or marks returns a picture, and models call it twice in one reply to compare two places.
# The second picture directly follows the first answer ("left"), and the second call seems to have returned nothing.
# Seen on 2026-11-30:
#   picture 1 | crop: left | picture 2 | crop: nothing | crop: output 'no such image'
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-google-genai==4.4.3
"$dir/env/bin/python" -W ignore - <<'PY'
import base64
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_google_genai import ChatGoogleGenerativeAI

requests = []
REPLY = {"candidates": [{"content": {"role": "model", "parts": [{"text": "A"}]}, "finishReason": "STOP"}]}


class Server(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        body = json.dumps(REPLY).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def picture(name):
    return {"type": "image", "base64": base64.b64encode(name.encode()).decode(), "mime_type": "image/png"}


def written(part):
    if "inlineData" in part:
        return base64.b64decode(part["inlineData"]["data"]).decode()
    answer = part["functionResponse"]
    assert "id" not in answer, "changed: ids are sent"
    output = answer["response"]["output"]
    if isinstance(output, str):
        return f"{answer['name']}: output {output!r}"
    return f"{answer['name']}: " + (", ".join(block["text"] for block in output) or "nothing")


server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_port}"
model = ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key="none", base_url=address)
calls = [{"name": "crop", "args": {"place": place}, "id": f"call{place}"} for place in (1, 2, 3)]
model.invoke(
    [
        HumanMessage("Which of the two is larger?"),
        AIMessage("", tool_calls=calls),
        ToolMessage([{"type": "text", "text": "left"}, picture("picture 1")], tool_call_id="call1"),
        ToolMessage([picture("picture 2")], tool_call_id="call2"),
        ToolMessage("no such image", status="error", tool_call_id="call3"),
    ]
)
sent = " | ".join(map(written, requests[-1]["contents"][-1]["parts"]))
print(sent)
expected = "picture 1 | crop: left | picture 2 | crop: nothing | crop: output 'no such image'"
assert sent == expected, "changed: how results are sent"
PY
