"""An MCP server over stdio without any package, which starts quickly: `python plain_server.py [VARIANT]`.

`look` returns the number of characters of its image, `dies` ends the process, `odd` returns an invalid result,
`refuses` returns a protocol error, `unwilling` returns no content, and `variables` returns the names of its environment
variables.
"""

import json
import os
import sys
from typing import Any

VARIANT = sys.argv[1] if len(sys.argv) > 1 else ""
SCHEMA = {"type": "object", "properties": {"image": {"type": "string", "format": "data-url"}}, "required": ["image"]}
NAMES = ("look", "dies", "odd", "refuses", "unwilling", "variables")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the rest of the response to a request, or None if the server does not respond."""
    if method == "initialize":
        facts = {"protocolVersion": params["protocolVersion"], "serverInfo": {"name": "Plain", "version": "1.0"}}
        return {"result": {**facts, "capabilities": {"tools": {}}}}
    if method == "tools/list":
        about = f"Says something.{VARIANT}"
        return {"result": {"tools": [{"name": name, "description": about, "inputSchema": SCHEMA} for name in NAMES]}}
    name = params.get("name")
    if name == "dies":
        os._exit(3)
    if name == "unwilling":
        return None
    if name == "odd":
        return {"result": {"content": "nothing"}}
    if name == "refuses":
        return {"error": {"code": -32602, "message": "the image is \x1b too small"}}
    image = params["arguments"]["image"]
    text = " ".join(sorted(os.environ)) if name == "variables" else f"{len(image)} characters: {image[:22]}"
    return {"result": {"content": [{"type": "text", "text": text}], "structuredContent": {"confidence": "high"}}}


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        sys.stderr.write(f"cancelled {message['params']['requestId']}\n")
    if "id" in message and (rest := answer(message["method"], message.get("params", {}))) is not None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **rest}) + "\n")
        sys.stdout.flush()
