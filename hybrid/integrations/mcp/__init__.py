"""The Model Context Protocol: hybrid's tools as a server, and other servers' tools in a run. Needs extra `mcp`."""
