"""`hybrid view`: show runs in a browser, even while they are in progress or before they start."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import click

from hybrid.cli import _option_types as types
from hybrid.cli._options import path_option


@click.command("view")
@click.argument("runs", type=types.FOLDER, nargs=-1, required=True, metavar="RUN...", shell_complete=types.runs)
@click.option("--port", type=types.PORT, default=0, show_default=True, help="0 for a free port.")
@click.option("--title", default="", help="[default: the benchmark's name]")
@click.option("--open", "open_browser", is_flag=True, help="Open the page in the browser of this machine.")
@path_option
def command(runs: tuple[Path, ...], port: int, title: str, open_browser: bool) -> int:
    """Show runs in a browser on this machine, even while they are in progress. Ctrl-C ends it.

    The first page shows for each run and solver how many questions are finished, the rate, the time left, the cost, the
    failures by kind, and the questions as they end. It links to the pages of `hybrid report`, which offer new answers
    as they arrive. A folder may be empty or not exist yet. Runs are only read. The pages are served on 127.0.0.1, which
    only this machine can reach.

    \b
    Examples:
      hybrid view runs/blink-gpt-4o-1a2b3c4d5e --open
      hybrid view runs/with-tools runs/blank-tools
    """
    from hybrid.core.secrets import redact
    from hybrid.log.folder import RunFolder
    from hybrid.report.live import LiveSite, PageServer, ViewedRun

    def tell(line: str) -> None:
        click.echo(f"note: {redact(line)}", err=True)

    with ExitStack() as stack:
        viewed = []
        for path in dict.fromkeys(runs):
            folder, site = RunFolder(path), None
            if folder.is_begun() or not folder.can_begin():
                site = LiveSite(RunFolder.existing(path), title, tell=tell)
            else:
                folder.refuse_orphans()
                tell(f"waiting for a run to start in {path}; Ctrl-C ends it")
            viewed.append(stack.enter_context(ViewedRun(folder, title, tell, site)))
        server = stack.enter_context(PageServer(viewed, port))
        click.echo(f"{server.url} shows {', '.join(map(str, dict.fromkeys(runs)))}; Ctrl-C ends it", err=True)
        if open_browser:
            import webbrowser

            webbrowser.open(server.url)
        server.serve_until_signal()
        click.echo("stopped; the runs are unchanged" if len(viewed) > 1 else "stopped; the run is unchanged", err=True)
    return 0
