"""Model Context Protocol: serves hybrid's tools, and offers other servers' tools in a run. Needs the extra `mcp`."""
