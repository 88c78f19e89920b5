#!/usr/bin/env bash
# mcp 1.30.0 (FastMCP and the client session of the same package).
#
# Expected: a tool that is declared to return `dict[str, float]` may return a value that is not a number (the depth of a
# point without a valid pixel, the correlation of a constant map). The value arrives as NaN or as null.
# Happens: the server writes NaN as null, and the client of the same package refuses the result by the schema that the
# server itself declared. The call ends in a RuntimeError, and its valid values are lost too. The tool has reported no
# error.
# Matters: one pixel without depth costs the whole output of a specialist. The client raises an exception, so there is
# no error result that a model or a harness could read.
# Seen on 2026-11-28:
#   depth of A alone: {'A': 0.5}
#   RuntimeError: Invalid structured content returned by tool depths: None is not of type 'number'
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" mcp==1.30.0
cat > "$dir/server.py" <<'PY'
from mcp.server.fastmcp import FastMCP

server = FastMCP("depth", log_level="ERROR")


@server.tool()
def depths(second: bool) -> dict[str, float]:
    """Depth of marked points; the second one has no valid pixel."""
    return {"A": 0.5} | ({"B": float("nan")} if second else {})


server.run()
PY
"$dir/env/bin/python" - "$dir/server.py" <<'PY'
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main():
    server = StdioServerParameters(command=sys.executable, args=[sys.argv[1]])
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        first = await session.call_tool("depths", {"second": False})
        print("depth of A alone:", first.structuredContent)
        assert first.structuredContent == {"A": 0.5}
        try:
            both = await session.call_tool("depths", {"second": True})
        except RuntimeError as error:
            print(f"RuntimeError: {str(error).splitlines()[0]}")
        else:
            raise SystemExit(f"changed: the result arrives as {both.structuredContent}")


asyncio.run(main())
PY
