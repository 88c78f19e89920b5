"""`hybrid tools measure NAME --fixations DIR`: how well a tool predicts where people look."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli import _option_types as types
from hybrid.cli import _options as shared
from hybrid.cli._options import path_option, tables_option
from hybrid.core.errors import UsageError
from hybrid.display.terminal import TEXT, Shape

if TYPE_CHECKING:
    from hybrid.core.types import Pixels
    from hybrid.scoring.gaze import GazeScores
    from hybrid.tool import Tool

# Number of skipped rows to print.
SHOWN = 20


@click.command("measure")
@click.argument("name")
@click.option(
    "--fixations", type=types.EXISTING_FOLDER, required=True, help="Folder of recorded fixations, and pictures."
)
@click.option("--images", type=types.EXISTING_FOLDER, help="Folder of the pictures, if it is a different folder.")
@click.option("--screen", metavar="WxH", help="Positions are on a screen of this size, not in pixels of the picture.")
@click.option("--weights", type=types.EXISTING_FOLDER, help="Measure the learned backend with these weights.")
@click.option("--args", "written", metavar="JSON", default="{}", help="Arguments of the tool, for every picture.")
@click.option("--limit", type=types.NUMBER, help="Maximum number of pictures.")
@path_option
@tables_option
@shared.as_json
def measure(
    name: str,
    fixations: Path,
    images: Path | None,
    screen: str | None,
    weights: Path | None,
    written: str,
    limit: int | None,
    tables: Shape,
    *,
    as_json: bool,
) -> int:
    """Compare a tool's saliency maps or scanpaths with recorded fixations of people.

    Reads tables (image, x, y, t, subject), lists of paths as in COCO-Search18 and COCO-FreeView, and matrices as in
    MIT1003 and CAT2000. Rows that cannot be used are named and left out.

    \b
    Examples:
      hybrid tools measure saliency --fixations eyes
      hybrid tools measure scanpath --fixations eyes --images coco --screen 1680x1050
    """
    from hybrid.display.tables import RENDERERS
    from hybrid.plugins.registry import load
    from hybrid.scoring import gaze
    from hybrid.scoring.fixations import read_fixations

    tool: Tool = load("tools", name)
    if not tool.gaze:
        raise UsageError(f"{name} predicts neither where people look nor in which order; {_others()}")
    arguments = _arguments(tool, written)
    recorded = read_fixations(fixations, images, _size(screen))
    measured = _measured(tool, arguments, None if weights is None else str(weights), recorded, limit)
    if as_json:
        click.echo(
            json.dumps({"tool": name, "backend": "learned" if weights else "classical", **gaze.as_json(measured)})
        )
        return 0
    click.echo(RENDERERS[TEXT[tables]](gaze.gaze_table(f"{name} compared with people's fixations", measured)), nl=False)
    for line in measured.skipped[:SHOWN]:
        click.echo(f"skipped: {line}", err=True)
    if len(measured.skipped) > SHOWN:
        click.echo(f"skipped: {len(measured.skipped) - SHOWN:,} more; --json lists all of them", err=True)
    return 0


def _measured(tool: Tool, args: dict[str, Any], weights: str | None, recorded: Any, limit: int | None) -> GazeScores:
    import numpy as np

    from hybrid.scoring.gaze import LEAST_FIXATIONS, measure_maps, measure_paths
    from hybrid.tool import Request

    card = tool.backend("learned" if weights else "classical")
    if card is None:
        if weights:
            raise UsageError(f"--weights: {tool.card.name} has no learned backend; leave the option out")
        raise UsageError(f"{tool.card.name} has no weight-free backend: give --weights DIR")
    backend: Any = card.make()
    backend.setup("cpu", weights)
    if tool.gaze == "map":
        return measure_maps(recorded, lambda pixels: backend.predict_map(Request((pixels,), tool.parse(args))), limit)

    fixation_count = getattr(tool.parse(args), "fixations", None)
    if "fixations" in args and isinstance(fixation_count, int) and fixation_count < LEAST_FIXATIONS:
        raise UsageError(f"--args: fixations {fixation_count} is below {LEAST_FIXATIONS}, the minimum for MultiMatch")

    def predict(pixels: Pixels, number: int) -> Any:
        count = {"fixations": max(LEAST_FIXATIONS, min(12, number))} if "fixations" in tool.args.model_fields else {}
        data = backend.run([Request((pixels,), tool.parse({**count, **args}))])[0].data
        return np.stack([np.array(data[key], float) for key in ("x_0_1", "y_0_1", "t_ms")], axis=1)

    return measure_paths(recorded, predict, limit)


def _others() -> str:
    from hybrid.plugins.registry import load, names

    tools = (load("tools", name) for name in names("tools"))
    return f"these do: {', '.join(tool.card.name for tool in tools if tool.gaze)}"


def _arguments(tool: Tool, text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--args: is not JSON ({error})") from error
    if not isinstance(arguments, dict):
        raise UsageError(f"--args: expected an object of arguments, found {text:.60}")
    tool.parse(arguments)
    return arguments


def _size(screen: str | None) -> tuple[int, int] | None:
    if screen is None:
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,4})x([1-9][0-9]{0,4})", screen)
    if match is None:
        raise UsageError(f"--screen {screen:.40}: write WIDTHxHEIGHT in pixels, as 1680x1050")
    return int(match[1]), int(match[2])
