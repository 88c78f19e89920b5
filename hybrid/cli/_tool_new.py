"""`hybrid tools new NAME`: begin a tool of one's own."""

from __future__ import annotations

from pathlib import Path

import click

from hybrid.errors import UsageError

TEMPLATE = '''"""WHAT IT FINDS, in one sentence.

`hybrid tools run {name} photo.jpg --picture out.png`
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.tool import Args, BackendCard, Card, Evidence, Request, Tool


class {title}Args(Args):
    """What a model may ask for; describe every field for it with pydantic's Field."""


class Classical:
    """The weight-free backend."""

    def setup(self, device: str, weights: str | None) -> None:
        """Nothing to load."""

    def run(self, requests: Sequence[Request[{title}Args]]) -> list[Evidence]:
        """One evidence a request, in order."""
        found = []
        for request in requests:
            height, width = request.images[0].shape[:2]
            found.append(Evidence(f"Image 1 is {{width}} x {{height}} px.", {{"size_px": [width, height]}}, 1.0))
        return found


TOOL = Tool(
    card=Card(
        name="{name}",
        summary="Says how large an image is.",
        limits="Says nothing about what the image shows.",
        backends=(BackendCard("classical", "1", Classical, "Reads the size of the array."),),
    ),
    args={title}Args,
)
'''


@click.command("new")
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to write it.  [default: the tools folder]")
def new(name: str, folder: Path | None) -> int:
    """Write the folder of a new tool that runs as it stands, to be filled in (CONTRIBUTING.md).

    \b
    Example:
      hybrid tools new brightness
    """
    import tools

    if not name.isidentifier() or name.startswith("_") or name != name.lower():
        raise UsageError(f"{name!r} is no name for a tool: lower-case letters, digits and underscores")
    target = (folder or Path(next(iter(tools.__path__)))) / name
    if target.exists():
        raise UsageError(f"{target} is there already")
    target.mkdir(parents=True)
    title = "".join(word.capitalize() for word in name.split("_"))
    (target / "__init__.py").write_text(TEMPLATE.format(name=name, title=title))
    click.echo(f"wrote {target / '__init__.py'}\nnext: hybrid tools run {name} IMAGE")
    return 0
