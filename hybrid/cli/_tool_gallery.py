"""`hybrid tools gallery DIR -o OUT`: runs the tools on a folder of images and makes a page of their pictures."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import logging_options_of, path_option
from hybrid.cli._tool_cache import open_cache
from hybrid.config.values import pairs
from hybrid.core.errors import HybridError, UsageError
from hybrid.display.progress_bar import with_progress

if TYPE_CHECKING:
    from hybrid.core.types import ImageRef
    from hybrid.serving.service import CachedTools
    from hybrid.tool import Args, Tool

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")
# A tool and its arguments for every image.
Chosen = tuple["Tool", "Args"]
TEMPLATES = Path(__file__).parents[1] / "templates" / "gallery"
# Largest number of pictures per tool output on the page.
MAX_PICTURES = 4

# Control characters and surrogates, which browsers treat differently.
UNSEEN = {code: "\ufffd" for code in (*range(32), *range(127, 160), *range(0xD800, 0xE000)) if chr(code) not in "\t\n"}


@dataclass(frozen=True)
class Figure:
    """One tool on one image or pair: its text, a remark in small print, and the files of its pictures."""

    name: str
    text: str
    small: str = ""
    pictures: tuple[str, ...] = ()
    failed: bool = False


@dataclass(frozen=True)
class GallerySection:
    """The figures of one image or pair under its name."""

    title: str
    small: str
    figures: tuple[Figure, ...]


@click.command("gallery")
@click.argument("folder", type=types.EXISTING_FOLDER)
@click.option("-o", "--out", type=types.ANY_PATH, required=True, help="Folder of the page.")
@click.option("--args", "written", multiple=True, metavar="TOOL=JSON", help="Arguments of a tool, for every image.")
@shared.backend
@click.option("--limit", type=types.NUMBER, default=12, show_default=True, help="Maximum number of images.")
@shared.max_seconds
@path_option
@logging_options_of
def gallery(
    folder: Path,
    out: Path,
    written: tuple[str, ...],
    backend: Literal["auto", "learned", "classical"],
    limit: int,
    max_seconds: float,
) -> int:
    """Run the tools on the images of FOLDER, and make a page with their texts and pictures.

    If a tool fails, hangs or crashes, only its own picture is missing. Tools that compare two images get each image and
    the next one in the order of their names.

    \b
    Examples:
      hybrid tools gallery photos -o gallery
      hybrid tools gallery photos -o gallery --args 'detection={"names": ["dog"]}'
    """
    from hybrid.config import ServiceOptions
    from hybrid.core.files import write_atomic
    from hybrid.serving.service import CachedTools

    # Use only regular files, because reading a pipe would block.
    sources = sorted(path for path in folder.iterdir() if path.suffix.lower() in SUFFIXES and path.is_file())
    if not sources:
        raise UsageError(f"{folder} contains no image ({', '.join(SUFFIXES)})")
    files = sources[:limit]
    selected, left_out = choose(pairs("--args", written))
    cache = open_cache()
    options = ServiceOptions(backend, timeout_s=max_seconds, pictures="png", isolated=True)
    out.mkdir(parents=True, exist_ok=True)
    with closing(CachedTools(cache.store, cache, options)) as service:
        sections = asyncio.run(_sections(service, out, selected, files))
    facts = [f"{len(files)} of {len(sources)} images of {folder.name}, backend {backend}.", *left_out, *service.notices]
    write_atomic(out / "index.html", page(facts, sections).encode())
    click.echo(f"wrote {out / 'index.html'}")
    return 0


def choose(args_by_tool: Mapping[str, str]) -> tuple[list[Chosen], list[str]]:
    """Return the tools to run, and lines that name the tools left out and the reasons.

    Raises:
        UsageError: arguments for a tool that does not exist, that are not a JSON object, or that the tool rejects.
    """
    from hybrid.plugins.registry import load, names

    for name in args_by_tool:
        load("tools", name)
    selected: list[Chosen] = []
    many: list[str] = []
    bare: list[str] = []
    broken: list[str] = []
    for name in names("tools"):
        try:
            tool: Tool = load("tools", name)
        except UsageError as error:
            broken.append(f"Not run: {error}.")
            continue
        try:
            if not isinstance(arguments := json.loads(args_by_tool.get(name, "{}")), dict):
                raise UsageError("expected a JSON object")
            args = tool.parse(arguments)
        except (ValueError, HybridError) as error:
            if name in args_by_tool:
                raise UsageError(f"--args {name}={args_by_tool[name]}: {error}") from error
            bare.append(name)
            continue
        if tool.card.images[0] > 2:
            many.append(name)
        else:
            selected.append((tool, args))
    notes = [f"Not run, because they need arguments (--args TOOL=JSON): {', '.join(bare)}."] if bare else []
    notes += [f"Not run, because they take more than two images: {', '.join(many)}."] if many else []
    return selected, [*notes, *broken]


async def _sections(
    service: CachedTools, out: Path, selected: Sequence[Chosen], files: Sequence[Path]
) -> list[GallerySection]:

    from hybrid.core.files import write_atomic
    from hybrid.core.images import read_image_file
    from hybrid.core.types import ImageRef

    async def make_figure(tool: Tool, args: Args, refs: Sequence[ImageRef], stem: str) -> Figure:
        name = tool.card.name
        try:
            finding = await service.call(tool, args, refs)
        except HybridError as error:
            return Figure(name, str(error), failed=True)
        pictures = finding.images[:MAX_PICTURES]
        endings = [""] if len(pictures) == 1 else [f"-{place}" for place in range(1, len(pictures) + 1)]
        files = tuple(f"{stem}-{name}{ending}.png" for ending in endings)
        for file, ref in zip(files, pictures, strict=True):
            write_atomic(out / file, service.store.read(ref.image))
        return Figure(name, finding.text, f"{finding.backend}, confidence {finding.confidence:.2f}", files)

    single, double = ([entry for entry in selected if entry[0].card.images[0] == n] for n in (1, 2))
    sections: list[GallerySection] = []
    read: list[tuple[int, str, ImageRef]] = []
    for number, path in enumerate(with_progress(files, "images", len(files), "image"), 1):
        try:
            image = service.store.put(read_image_file(path, str(path)), str(path))
        except HybridError as error:
            sections.append(GallerySection(path.name, "", (Figure("image", str(error), failed=True),)))
            continue
        ref = ImageRef("img:1", image)
        read.append((number, path.name, ref))
        name, data = f"{number:03d}.jpg", io.BytesIO()
        service.store.picture(image).save(data, "JPEG", quality=90)
        write_atomic(out / name, data.getvalue())
        figures = [
            Figure("the image itself", "", pictures=(name,)),
            *[await make_figure(*entry, [ref], f"{number:03d}") for entry in single],
        ]
        sections.append(GallerySection(path.name, f"{ref.image.width} x {ref.image.height} px", tuple(figures)))
    for (number, name, ref), (other, second, after) in pairwise(read):
        stem = f"{number:03d}-{other:03d}"
        figures = [await make_figure(*entry, [ref, after], stem) for entry in double]
        sections.append(GallerySection(f"{name} and {second}", "", tuple(figures)))
    return sections


def page(facts: Sequence[str], sections: Sequence[GallerySection]) -> str:
    """Return the full page: which tools ran or not, then the sections. Every picture links to its full size.

    Text from tools, files and images is always escaped; the page's security policy lets a browser load only the
    pictures next to the page, and run no script.
    """
    from jinja2 import Environment

    def visible(value: object) -> object:
        return value.translate(UNSEEN) if type(value) is str else value

    html, style = ((TEMPLATES / name).read_text("utf-8") for name in ("page.html", "style.css"))
    # A page opened from a folder has no web origin, so its pictures count as `file:`.
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src 'self' file:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    environment = Environment(autoescape=True, trim_blocks=True, keep_trailing_newline=True, finalize=visible)
    return environment.from_string(html).render(facts=facts, sections=sections, style=style, policy=policy)
