"""`hybrid tools serve`: the tools for other programs, over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import path_option
from hybrid.core.errors import UsageError, install_extra
from hybrid.plugins.registry import plugin, refuse_unknown

if TYPE_CHECKING:
    from hybrid.integrations.toolbox import Toolbox


@click.command("serve")
@path_option
@click.option("--tools", "tool_names", help="Serve only these tools.  [default: all]")
@click.option("--http", is_flag=True, help="Serve streamable HTTP on 127.0.0.1 instead of stdin and stdout.")
@click.option("--port", type=types.PORT, help="With --http; 0 for a free port.  [default: 0]")
@click.option(
    "--allow-folder",
    "folder",
    type=types.EXISTING_FOLDER,
    metavar="DIR",
    help="Callers may name image files inside DIR. Without this option, they can only send images as data.",
)
@shared.backend
@click.option("--weights", multiple=True, metavar="[TOOL=]DIR_OR_ID", help="Weights of a tool's learned backend.")
@shared.device
def serve(
    tool_names: str | None,
    *,
    http: bool,
    port: int | None,
    folder: Path | None,
    backend: Literal["auto", "learned", "classical"],
    weights: tuple[str, ...],
    device: str,
) -> int:
    """Serve the tools to any program that speaks MCP, such as an editor, a desktop assistant or an agent.

    Over stdio the program itself starts and ends this command. With --http you give it the printed address, which only
    this machine can reach. An image is a data URL, base64, an object with base64 under "data", or, with --allow-folder,
    the path of a file relative to that folder. A result has the text and pictures of the tool output, and its numbers,
    confidence and backend as structured content.

    \b
    Examples:
      hybrid tools serve --tools crop,depth --allow-folder pictures
      hybrid tools serve --http --port 8765
    """
    from hybrid.config import ServiceOptions
    from hybrid.integrations.pictures import Folder
    from hybrid.integrations.toolbox import Toolbox
    from hybrid.plugins.weights_option import tools_named, weights_by_tool
    from hybrid.serving.loader import refuse_absent

    if port is not None and not http:
        raise UsageError("--port has no effect without --http: add --http, or leave --port out")
    selected = _read_tool_names(tool_names)
    weight_options = weights_by_tool(weights, tools_named(selected or ()))
    try:
        serve_mcp: Callable[[Toolbox, int | None], None] = plugin("hybrid.tool_servers", "mcp")
    except ImportError as error:
        raise UsageError(f"hybrid tools serve needs the package mcp: {install_extra('mcp')} ({error})") from error
    refuse_absent(device)
    # Isolate the tools, so that a crash of a tool fails its call and not the server.
    service = ServiceOptions(backend=backend, weights=weight_options, device=device, isolated=True)
    with closing(Toolbox.of(selected, service, None if folder is None else Folder(folder))) as toolbox:
        serve_mcp(toolbox, (port or 0) if http else None)
    return 0


def _read_tool_names(tool_names: str | None) -> list[str] | None:
    """Return the names in the value of `--tools`. Raises `UsageError` for an unknown name."""
    selected = None if tool_names is None else [name.strip() for name in tool_names.split(",") if name.strip()]
    if selected == []:
        raise UsageError("--tools names no tool")
    for name in selected or ():
        try:
            refuse_unknown("tools", name)
        except UsageError as error:
            raise UsageError(f"--tools: {error}") from error
    return selected
