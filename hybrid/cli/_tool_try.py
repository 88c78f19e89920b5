"""`hybrid tools try NAME`: a local page for trying a tool while its code is being written."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import check_name_conflict, logging_options_of, path_option
from hybrid.core.errors import UsageError


@click.command("try")
@shared.tool_name
@click.argument("images", nargs=-1, type=types.EXISTING_FILE)
@click.option("--port", type=types.PORT, default=0, show_default=True, help="0 for a free port.")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser of this machine.")
@shared.backend
@shared.weights
@shared.device
@shared.max_seconds
@path_option
@logging_options_of
def try_(
    name: str,
    images: tuple[Path, ...],
    port: int,
    open_browser: bool,
    backend: Literal["auto", "learned", "classical"],
    weights: tuple[str, ...],
    device: str,
    max_seconds: float,
) -> int:
    """Try a tool on a page: drop pictures, set its arguments, see its output. Ctrl-C ends it.

    The page shows the text, the pictures, the data and the time of each call, and the same call as a command, in Python
    and over MCP. When a file of the tool changes, the tool is reloaded and called again. The page is served on
    127.0.0.1, which only this machine can reach.

    \b
    Examples:
      hybrid tools try depth photo.jpg --open
      hybrid tools try my_tool photo.jpg --path my_tools
    """
    from hybrid.integrations.tool_page import ToolPage
    from hybrid.integrations.tool_process import ToolProcess, ToolProcessOptions
    from hybrid.plugins.discovery import looked_in
    from hybrid.plugins.registry import load
    from hybrid.plugins.weights_option import weights_by_tool

    check_name_conflict("tools", name)
    by_tool = weights_by_tool(weights, [load("tools", name)])
    paths = {tool: str(path) for tool, path in by_tool.items()}
    setup = ToolProcessOptions(name, backend, paths, device, max_seconds, looked_in())
    repeated = [
        word
        for option, value, usual in (("--backend", backend, "auto"), ("--device", device, "cpu"))
        if value != usual
        for word in (option, value)
    ]
    repeated += [word for tool, path in paths.items() for word in ("--weights", f"{tool}={path}")]
    with ToolProcess(setup) as process:
        if problem := process.describe().get("error"):
            raise UsageError(problem)
        with ToolPage(process, images, repeated, port) as server:
            click.echo(f"{server.url} shows the tool {name}; Ctrl-C ends the server", err=True)
            if open_browser:
                import webbrowser

                webbrowser.open(server.url)
            server.serve_until_signal()
            click.echo("ended", err=True)
    return 0
