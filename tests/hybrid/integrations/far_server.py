"""An MCP server with the official package: `python far_server.py PORT`; `slow` returns a number after a while."""

import asyncio
import sys

from mcp.server.fastmcp import FastMCP

server = FastMCP("Far", host="127.0.0.1", port=int(sys.argv[1]), log_level="CRITICAL")


@server.tool()
async def slow(number: int) -> str:
    """Says the number."""
    await asyncio.sleep(0.5)
    return str(number)


server.run("streamable-http")
