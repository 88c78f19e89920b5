#!/usr/bin/env bash
# langchain-cohere 0.6.0, langchain-core 1.8.3.
#
# Expected: an image in LangChain's own form (`{"type": "image", "base64": ..., "mime_type": ...}`) reaches a vision
# model of Cohere as the same image in OpenAI's form (`image_url`) does, or is refused.
# Happens: the image is left out of the request, without an error or a warning. If a tool returns the image, its base64
# text reaches the model as a document, in either form.
# Matters: LangChain documents its own form as the form for every provider. The model answers a question about a picture
# that it never received, and a tool's picture is paid for as thousands of tokens of text.
# Seen on 2026-11-30:
#   user, image_url: sent as image_url
#   user, image: not sent, and no warning of it
#   tool, image_url: sent as text in a document
#   tool, image: sent as text in a document
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-cohere==0.6.0 langchain-core==1.8.3 pillow==12.3.0
"$dir/env/bin/python" - <<'PY'
import base64
import io
import json
import threading
import warnings
from http.server import BaseHTTPRequestHandler, HTTPServer

from langchain_cohere import ChatCohere
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from PIL import Image

requests = []


class Server(BaseHTTPRequestHandler):
    """Keeps each request; answers "done"."""

    def log_message(self, *_):
        pass

    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        message = {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
        text = json.dumps({"id": "m1", "finish_reason": "COMPLETE", "message": message}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


def place_of(data: str) -> str:
    """Say in which part of the last message the image was sent."""
    content = requests[-1]["messages"][-1]["content"]
    for part in content if isinstance(content, list) else []:
        if data in json.dumps(part):
            return "sent as text in a document" if part["type"] == "document" else f"sent as {part['type']}"
    return "not sent"


buffer = io.BytesIO()
Image.new("RGB", (64, 64), (200, 30, 30)).save(buffer, "PNG")
data = base64.b64encode(buffer.getvalue()).decode()
images = {
    "image_url": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}},
    "image": {"type": "image", "base64": data, "mime_type": "image/png"},
}
server = HTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
model = ChatCohere(model="command-a-vision-07-2025", base_url=f"http://127.0.0.1:{server.server_port}", cohere_api_key="none")
question = {"type": "text", "text": "Which colour is it?"}
call = AIMessage("", tool_calls=[{"name": "crop", "args": {}, "id": "c1", "type": "tool_call"}])
places = {}
for form, image in images.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.invoke([HumanMessage([question, image])])
        places["user", form] = place_of(data)
    assert not any("image" in str(item.message).lower() for item in caught), "changed: a warning is given"
    print(f"user, {form}: {places['user', form]}" + (", and no warning of it" if form == "image" else ""))
for form, image in images.items():
    model.invoke([HumanMessage([question, images["image_url"]]), call, ToolMessage([image], tool_call_id="c1")])
    places["tool", form] = place_of(data)
    print(f"tool, {form}: {places['tool', form]}")
assert places["user", "image_url"] == "sent as image_url", places
assert places["user", "image"] == "not sent", "changed: an image in LangChain's form is sent"
assert {places["tool", form] for form in images} == {"sent as text in a document"}, "changed: images of tools"
PY
