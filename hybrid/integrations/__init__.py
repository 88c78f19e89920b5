"""The tools in other people's programs: as LangChain tools (`langchain.py`) and as an MCP server (`mcp_server.py`)."""
