"""Tools of other programs in a run, provided by plug-ins of the entry-point group `hybrid.foreign_tools`.

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

# Entry-point group of functions that return the `ForeignTools` of the servers named by an option.
GROUP: Final = "hybrid.foreign_tools"


@dataclass(frozen=True)
class ForeignServer:
    """A server: its name in the run, its address without secrets, and its own description."""

    name: str
    address: str
    title: str
    version: str

    @property
    def about(self) -> str:
        """Title and version, in the form used in the manifest and in tool outputs."""
        return f"{self.title} {self.version}".strip()


@dataclass(frozen=True)
class ForeignTool:
    """A tool of a server. `code` is the hex sha256 of its description, which replaces its code."""

    server: ForeignServer
    tool: Tool
    backend: str
    code: str


@dataclass(frozen=True)
class ForeignTools:
    """The foreign servers of a run, their tools by name, and the reasons why tools are not offered, by name."""

    servers: tuple[ForeignServer, ...] = ()
    tools: Mapping[str, ForeignTool] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    # Creates the service that runs these tools and the built-in ones.
    runner: Callable[[ImageStore, FindingCache, ServiceOptions], CachedTools] = CachedTools

    def as_json(self, used: Collection[str]) -> list[Json]:
        """Return the servers of the tools in `used` as in the manifest, with the hash of each of these tools."""
        rows: list[Json] = []
        for server in self.servers:
            tools = {name: tool.code for name, tool in self.tools.items() if name in used and tool.server is server}
            facts = {"prefix": server.name, "name": server.title, "version": server.version, "address": server.address}
            rows += [{**facts, "tools": tools}] if tools else []
        return rows
