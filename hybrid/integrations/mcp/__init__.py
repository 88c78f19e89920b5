"""The Model Context Protocol: our tools as a server, and the tools of other servers in a run. Needs the extra `mcp`."""
