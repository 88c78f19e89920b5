"""`hybrid tools gallery` and `hybrid tools new`: look at every tool's pictures; begin a tool of one's own."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.errors import HybridError, UsageError

if TYPE_CHECKING:
    from hybrid.images import ImageStore
    from hybrid.service import ToolService
    from hybrid.tool import Tool
    from hybrid.types import ImageRef

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")

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


@dataclass(frozen=True)
class Shown:
    """One tool on one image: its picture's file name, or why there is none."""

    tool: str
    text: str
    picture: str | None


@click.command("gallery")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Folder of the page.")
@click.option("--backend", type=click.Choice(["auto", "learned", "classical"]), default="auto", show_default=True)
@click.option("--limit", type=click.IntRange(1), default=12, show_default=True, help="At most so many images.")
def gallery(folder: Path, out: Path, backend: Literal["auto", "learned", "classical"], limit: int) -> int:
    r"""Run every tool that takes one image on the images of FOLDER, and make a page of what they draw.

    \b
    Example:
      hybrid tools gallery photos -o gallery
    """
    from hybrid.cache import FindingCache
    from hybrid.images import ImageStore, home
    from hybrid.service import ServiceOptions, ToolService

    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES)[:limit]
    if not files:
        raise UsageError(f"{folder} holds no image ({', '.join(SUFFIXES)})")
    store = ImageStore(home() / "images")
    service = ToolService(store, FindingCache(home() / "findings", store), ServiceOptions(backend))
    out.mkdir(parents=True, exist_ok=True)
    try:
        page = asyncio.run(_page(service, store, files, out))
    finally:
        service.close()
    (out / "index.html").write_text(page)
    click.echo(f"wrote {out / 'index.html'}")
    return 0


async def _page(service: ToolService, store: ImageStore, files: Sequence[Path], out: Path) -> str:
    from tqdm import tqdm

    from hybrid.registry import load, names
    from hybrid.types import ImageRef

    tools: list[Tool] = [load("tools", name) for name in names("tools")]
    single = [tool for tool in tools if tool.card.images[0] <= 1]
    rows = []
    for number, path in enumerate(tqdm(files, desc="images", unit="image"), 1):
        try:
            ref = ImageRef("img:1", store.put(path.read_bytes(), str(path)))
        except HybridError as error:
            rows.append(_section(path.name, [Shown("image", str(error), None)]))
            continue
        shown = [await _one(service, store, tool, ref, out / f"{number:03d}-{tool.card.name}.png") for tool in single]
        rows.append(_section(path.name, shown))
    return _html(rows)


async def _one(service: ToolService, store: ImageStore, tool: Tool, ref: ImageRef, target: Path) -> Shown:
    from pydantic import ValidationError

    name = tool.card.name
    try:
        finding = await service.call(tool, tool.args(), [ref])
    except ValidationError:
        return Shown(name, "needs arguments: run it with `hybrid tools run`", None)
    except HybridError as error:
        return Shown(name, str(error), None)
    text = f"{finding.text}\n({finding.backend}, confidence {finding.confidence:.2f})"
    if not finding.images:
        return Shown(name, text, None)
    target.write_bytes(store.read(finding.images[0].image))
    return Shown(name, text, target.name)


def _section(title: str, shown: Sequence[Shown]) -> str:
    cells = []
    for one in shown:
        picture = f'<img src="{html.escape(one.picture)}" alt="{html.escape(one.tool)}">' if one.picture else ""
        cells.append(
            f"<figure>{picture}<figcaption><b>{html.escape(one.tool)}</b><pre>{html.escape(one.text)}</pre>"
            "</figcaption></figure>"
        )
    return f"<section><h2>{html.escape(title)}</h2><div>{''.join(cells)}</div></section>"


def _html(rows: Sequence[str]) -> str:
    style = (
        "body{font:14px system-ui;margin:2em;color:#222}section div{display:flex;flex-wrap:wrap;gap:1em}"
        "figure{margin:0;width:340px}img{max-width:100%;display:block}pre{white-space:pre-wrap;margin:.3em 0}"
    )
    head = f'<meta charset="utf-8"><title>Tools</title><style>{style}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><h1>Tools</h1>{"".join(rows)}</body></html>\n'


@click.command("new")
@click.argument("name")
@click.option("--folder", type=click.Path(path_type=Path), help="Where to write it.  [default: the tools folder]")
def new(name: str, folder: Path | None) -> int:
    r"""Write the file of a new tool that runs as it stands, to be filled in.

    \b
    Example:
      hybrid tools new brightness
    """
    import tools

    if not name.isidentifier() or name.startswith("_") or name != name.lower():
        raise UsageError(f"{name!r} is no name for a tool: lower-case letters, digits and underscores")
    target = (folder or Path(next(iter(tools.__path__)))) / f"{name}.py"
    if target.exists():
        raise UsageError(f"{target} is there already")
    title = "".join(word.capitalize() for word in name.split("_"))
    target.write_text(TEMPLATE.format(name=name, title=title))
    click.echo(f"wrote {target}\nnext: hybrid tools run {name} IMAGE")
    return 0
