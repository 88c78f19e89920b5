"""`hybrid view`: show the pages of a run in a browser while the run continues."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import click

from hybrid.cli import _complete
from hybrid.cli import _option_types as types
from hybrid.cli._path import path_option

# Time to wait for a run's folder, which exists once the data are read; a slow disk takes about this long.
PATIENCE_S = 60.0
LOOK_EVERY_S = 0.5


def wait_for_run(run: Path, tell: Callable[[str], None]) -> None:
    """Wait until a starting run has its manifest, for at most `PATIENCE_S` seconds.

    Does not wait where no run can start, as in a folder with other files or below a file.
    """
    from hybrid.log.folder import RunFolder

    end, folder = time.monotonic() + PATIENCE_S, RunFolder(run)
    if folder.is_begun() or not folder.can_begin():
        return
    tell(f"waiting up to {PATIENCE_S:g} s for a run to begin in {run}; Ctrl-C ends it")
    while not folder.is_begun() and folder.can_begin() and time.monotonic() < end:
        time.sleep(LOOK_EVERY_S)


@click.command("view")
@click.argument("run", type=types.FOLDER, shell_complete=_complete.runs)
@click.option("--port", type=types.PORT, default=0, show_default=True, help="0 for a free port.")
@click.option("--title", default="", help="[default: the benchmark's name]")
@click.option("--open", "open_browser", is_flag=True, help="Open the pages in the browser of this machine.")
@path_option
def command(run: Path, port: int, title: str, open_browser: bool) -> int:
    """Show a run in a browser on this machine; the pages offer what is new as answers arrive. Ctrl-C ends it.

    The run may be going on in another terminal: its folder is only read. The pages are those of `hybrid report`. They
    are served on 127.0.0.1, to this machine alone.

    \b
    Example:
      hybrid view runs/blink-gpt-4o-1a2b3c4d5e --open
    """
    from hybrid.core.secrets import redact
    from hybrid.log.folder import RunFolder
    from hybrid.report.live import LiveSite, PageServer

    def tell(line: str) -> None:
        click.echo(f"note: {redact(line)}", err=True)

    wait_for_run(run, tell)
    with LiveSite(RunFolder.existing(run), title, tell=tell) as site, PageServer(site, port) as server:
        click.echo(f"{server.url} shows {run}; Ctrl-C ends it", err=True)
        if open_browser:
            import webbrowser

            webbrowser.open(server.url)
        server.serve_until_signal()
        click.echo("ended; the run is as it was", err=True)
    return 0
