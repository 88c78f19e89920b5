"""Hybrid's tools in other programs: as LangChain tools (`langchain.py`) and over MCP (`mcp/`)."""
