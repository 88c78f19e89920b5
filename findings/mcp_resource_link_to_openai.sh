#!/usr/bin/env bash
# langchain-mcp-adapters 0.3.2, langchain-openai 1.7.4, mcp 1.30.0.
#
# Expected: an MCP tool may answer with text and a link to a resource (the protocol's `resource_link`, for example the
# full depth map that the text summarises). An agent of LangChain gives the model what it can and continues.
# Happens: the adapter turns the link into a content block of type `file` with a URL. ChatOpenAI refuses that block with
# a ValueError when the *next* request is written, so the whole conversation ends, the text is lost, and the error names
# neither the tool nor the link.
# Matters: tools that follow the protocol end an agent's run. The failure comes one turn after the call and looks like a
# failure of the model's client.
# Seen on 2026-11-28:
#   from the adapter: ['text', 'file']
#   ValueError: OpenAI Chat Completions does not support file URLs.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-mcp-adapters==0.3.2 langchain-openai==1.7.4 mcp==1.30.0
cat > "$dir/server.py" <<'PY'
from mcp.server.fastmcp import FastMCP
from mcp.types import ResourceLink, TextContent

server = FastMCP("depth", log_level="ERROR")


@server.tool()
def depth(image: str) -> list:
    """Which point is nearer, and where the map lies."""
    link = ResourceLink(type="resource_link", uri="depth://img-1", name="depth map")
    return [TextContent(type="text", text="A is nearer."), link]


server.run()
PY
"$dir/env/bin/python" - "$dir/server.py" <<'PY'
import asyncio
import sys

from langchain_core.messages import AIMessage, HumanMessage
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI

CALL = {"name": "depth", "args": {"image": "img:1"}, "id": "call-1", "type": "tool_call"}


async def main():
    connection = {"command": sys.executable, "args": [sys.argv[1]], "transport": "stdio"}
    tools = await MultiServerMCPClient({"depth": connection}).get_tools()
    result = await tools[0].ainvoke(CALL)
    print("from the adapter:", [block["type"] for block in result.content])
    assert [block["type"] for block in result.content] == ["text", "file"]
    # No server is needed: the request is refused while it is written.
    model = ChatOpenAI(model="any", api_key="none", base_url="http://127.0.0.1:9/v1", max_retries=0)
    try:
        await model.ainvoke([HumanMessage("Which is nearer?"), AIMessage("", tool_calls=[CALL]), result])
    except ValueError as error:
        print(f"ValueError: {error}")
    else:
        raise SystemExit("changed: the request is written")


asyncio.run(main())
PY
