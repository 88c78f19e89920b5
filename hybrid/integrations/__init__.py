"""The tools in other people's programs: as LangChain tools (`langchain.py`) and over MCP (`mcp/`)."""
