"""`hybrid tools`: list, describe and run the specialist tools."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import check_name_conflict, logging_options_of, path_option, tables_option
from hybrid.cli._tool_args import arguments_of
from hybrid.cli._tool_cache import cache, open_cache
from hybrid.cli._tool_card import show
from hybrid.cli._tool_fetch import fetch
from hybrid.cli._tool_gallery import gallery
from hybrid.cli._tool_import import import_weights
from hybrid.cli._tool_measure import measure
from hybrid.cli._tool_metrics import metrics
from hybrid.cli._tool_new import new
from hybrid.cli._tool_serve import serve
from hybrid.cli._tool_server import down, status, up
from hybrid.cli._tool_try import try_
from hybrid.cli._tool_weights import check, check_learned
from hybrid.core.error_text import describe_error
from hybrid.core.errors import Fault, ToolError, UsageError
from hybrid.display.notes import tell
from hybrid.display.terminal import NARROW, WIDE_FROM, Shape, folded, opening

if TYPE_CHECKING:
    from hybrid.config import ServiceOptions
    from hybrid.core.types import Finding, Json
    from hybrid.serving.cache import FindingCache
    from hybrid.tool import Card, Tool

traces = logging.getLogger(f"{__name__}.traces")


@click.group("tools")
def command() -> None:
    """List, describe and run the specialist tools."""


@command.command("list")
@path_option
@tables_option
@click.option("--all", "show_all", is_flag=True, help="Print full sentences on what each tool answers.")
def list_(tables: Shape, show_all: bool) -> int:
    """Print a line per tool: its backends and what it answers. Exit code 3 if a tool cannot be loaded.

    `hybrid tools show NAME` prints the whole card of a tool.

    \b
    Example:
      hybrid tools list --path my_tools
    """
    from hybrid.plugins.registry import is_outside, load, names
    from hybrid.plugins.weights import missing_library
    from hybrid.tool.card_file import card_alone

    failed, cards = 0, []
    for name in names("tools"):
        try:
            # A tool of this project whose card is a data file is not imported.
            spec = None if is_outside("tools", name) else find_spec(f"tools.{name}")
            alone = card_alone(Path(spec.origin)) if spec is not None and spec.origin else None
            card: Card = load("tools", name).card if alone is None else alone
        except UsageError as error:
            click.echo(f"{name}: {error}", err=True)
            failed = 3
            continue
        cards.append(card)
        backends = ", ".join(backend.name for backend in card.backends)
        line = f"{name:24} {backends:20} {card.summary}"
        width = NARROW if tables == "narrow" else WIDE_FROM
        click.echo(folded(line, tables, hang=4) if show_all else opening(line, width))
    if reason := missing_library(cards):
        tell(f"note: {reason}")
    return failed


@command.command("run")
@shared.tool_name
@click.argument("images", nargs=-1, type=types.EXISTING_FILE, required=True)
@click.option("--args", "args_json", default="{}", show_default=True, help="The tool's arguments as JSON.")
@shared.backend
@shared.weights
@click.option(
    "--unchecked-weights",
    "unchecked",
    is_flag=True,
    help="Use learned weights without checking their known-answer images; a note says so.",
)
@shared.device
@shared.max_seconds
@click.option("--no-cache", is_flag=True, help="Neither read nor write cached tool output.")
@click.option("--picture", type=types.ANY_PATH, help="Save the tool's picture as PNG; further ones as FILE-2.png, ...")
@click.option("--json", "as_json", is_flag=True, help="Print the output's data as JSON.")
@path_option
@logging_options_of
def run_(
    name: str,
    images: tuple[Path, ...],
    args_json: str,
    backend: Literal["auto", "learned", "classical"],
    weights: tuple[str, ...],
    unchecked: bool,
    device: str,
    max_seconds: float,
    no_cache: bool,
    picture: Path | None,
    as_json: bool,
) -> int:
    """Run the tool NAME on IMAGES. Exit code 3 if it fails, hangs or crashes.

    \b
    Examples:
      hybrid tools run markers photo.jpg --picture marks.png
      hybrid tools run depth photo.jpg --args '{"points": [{"x": 40, "y": 90, "label": "A"}]}' --json
    """
    from hybrid.config import ServiceOptions
    from hybrid.plugins.registry import load
    from hybrid.plugins.weights_option import weights_by_tool

    arguments = arguments_of(args_json)
    check_name_conflict("tools", name)
    tool: Tool = load("tools", name)
    weight_options = weights_by_tool(weights, [tool])
    check_learned(tool, weight_options, device)
    options = ServiceOptions(
        backend, weight_options, device, unchecked=unchecked, timeout_s=max_seconds, pictures="png", isolated=True
    )
    cached_findings = open_cache(keeps=not no_cache)
    try:
        finding = asyncio.run(_find(cached_findings, options, tool, arguments, images))
    except ToolError as error:
        if error.fault not in (Fault.TOOL_ERROR, Fault.TIMEOUT):
            raise
        traces.info("%s\n%s", name, error.trace.rstrip())
        click.echo(f"hybrid: {describe_error(error)}", err=True)
        return 3
    if unchecked and finding.backend == "learned" and tool.looked_into:
        tell(f"note: {name}: the known answers of its weights were not checked (--unchecked-weights)")
    _print(finding, as_json=as_json)
    if picture is not None:
        _write_pictures(finding, cached_findings, picture)
    return 0


def _write_pictures(finding: Finding, cache: FindingCache, path: Path) -> None:
    """Write the first picture to `path`, and further pictures next to it under numbered names.

    Raises `UsageError` if the output has no picture.
    """
    if not finding.images:
        raise UsageError("--picture: this output has no picture")
    for place, ref in enumerate(finding.images, 1):
        target = path if place == 1 else path.with_stem(f"{path.stem}-{place}")
        target.write_bytes(cache.store.read(ref.image))
        tell(f"wrote {target}")


async def _find(
    cache: FindingCache, options: ServiceOptions, tool: Tool, arguments: dict[str, Json], images: tuple[Path, ...]
) -> Finding:
    """Store the images and run the tool on them. Raises what `CachedTools.call` raises."""
    from hybrid.core.images import read_image_file
    from hybrid.core.types import ImageRef
    from hybrid.serving.service import CachedTools

    with closing(CachedTools(cache.store, cache, options)) as service:
        stored = [cache.store.put(read_image_file(path, str(path)), str(path)) for path in images]
        refs = [ImageRef(f"img:{place}", image) for place, image in enumerate(stored, 1)]
        return await service.call(tool, tool.parse(arguments), refs)


def _print(finding: Finding, *, as_json: bool) -> None:
    if as_json:
        facts = {"backend": finding.backend, "version": finding.version, "confidence": finding.confidence}
        click.echo(json.dumps({**facts, "text": finding.text, "data": finding.data}))
        return
    click.echo(finding.text)
    click.echo(f"confidence {finding.confidence:.2f}, {finding.backend} backend, version {finding.version}")


for _further in (
    cache,
    check,
    down,
    fetch,
    gallery,
    import_weights,
    measure,
    metrics,
    new,
    serve,
    show,
    status,
    try_,
    up,
):
    command.add_command(_further)
