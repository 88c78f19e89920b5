"""The tools of other programs in a run, as a plug-in of the entry-point group `hybrid.foreign_tools` offers them.

offered = plugin(GROUP, "mcp")(["shapes=python shapes_server.py"], {"shapes_outline": "image"}, names("tools"))
finding = await offered.runner(store, cache, options).call(offered.tools["shapes_outline"].tool, args, refs)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from hybrid.config import ServiceOptions
from hybrid.core.images import ImageStore
from hybrid.core.types import Json
from hybrid.serving.cache import FindingCache
from hybrid.serving.service import CachedTools
from hybrid.tool import Tool

# The entry-point group of functions that give the `ForeignTools` of the servers that an option names.
GROUP: Final = "hybrid.foreign_tools"


@dataclass(frozen=True)
class ForeignServer:
    """A server: its name in the run, where it is reached, without secrets, and how it describes itself."""

    name: str
    address: str
    title: str
    version: str

    @property
    def about(self) -> str:
        """Title and version, as they stand in the manifest and in findings."""
        return f"{self.title} {self.version}".strip()


@dataclass(frozen=True)
class ForeignTool:
    """A tool of a server. `code` is the hex sha256 of its description, which stands for its code."""

    server: ForeignServer
    tool: Tool
    backend: str
    code: str


@dataclass(frozen=True)
class ForeignTools:
    """The foreign servers of a run, their tools by name, and by name why a tool is not offered."""

    servers: tuple[ForeignServer, ...] = ()
    tools: Mapping[str, ForeignTool] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    # Makes what runs these tools and our own.
    runner: Callable[[ImageStore, FindingCache, ServiceOptions], CachedTools] = CachedTools

    def as_json(self, used: Collection[str]) -> list[Json]:
        """The servers of the tools in `used` as the manifest has them, with the hash of each of these tools."""
        rows: list[Json] = []
        for server in self.servers:
            tools = {name: tool.code for name, tool in self.tools.items() if name in used and tool.server is server}
            facts = {"prefix": server.name, "name": server.title, "version": server.version, "address": server.address}
            rows += [{**facts, "tools": tools}] if tools else []
        return rows
