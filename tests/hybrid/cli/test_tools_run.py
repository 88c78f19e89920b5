"""`hybrid tools run NAME IMAGE... --args JSON --picture OUT.png` for every tool that answers without weights."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hybrid.benchmarks.blink.sample import item
from hybrid.core import images
from hybrid.plugins.registry import load, names
from hybrid.tool import Tool
from tests.finished_runs import Command
from tests.tables import stored

# BLINK tasks whose generated images suit a tool; other tools get as many images of a rendered scene as they take.
TASKS: Mapping[str, str] = stored(__file__, "TASKS")
# Arguments of a simple call; tools that are not listed, such as a new one, are called without any.
ARGS: Mapping[str, Mapping[str, Any]] = stored(__file__, "ARGS")


@pytest.mark.system
@pytest.mark.parametrize("name", [name for name in names("tools") if load("tools", name).backend("classical")])
def test_every_weight_free_tool_prints_its_finding_and_saves_its_picture(
    command: Command, tmp_path: Path, name: str
) -> None:
    tool: Tool = load("tools", name)
    fewest, most = tool.card.images
    built = item(TASKS.get(name, "Relative_Depth"), 0, 3).images[:most]
    # Half the size is enough to see something; a puzzle needs its full size.
    images = built if name == "jigsaw" else tuple(np.ascontiguousarray(pixels[::2, ::2]) for pixels in built)
    images = images if len(images) >= fewest else images[:1] * fewest
    files = [tmp_path / f"{place}.png" for place in range(len(images))]
    for file, pixels in zip(files, images, strict=True):
        Image.fromarray(pixels).save(file)
    out = tmp_path / "out.png"
    words = (*files, "--args", json.dumps(ARGS.get(name, {})), "--backend", "classical", "--picture", out)
    result = command("tools", "run", name, *words, "--json")
    assert (result.code, result.err.splitlines()[:1]) == (0, [f"wrote {out}"])
    data = json.loads(result.out)
    assert (data["backend"], data["version"]) == ("classical", tool.backend("classical").version)
    assert 0 <= data["confidence"] <= 1
    assert data["data"]
    with Image.open(out) as picture:
        assert picture.format == "PNG"
        # Pictures of tools are overlays of the input's size, except crops, which are enlarged, and the assembled
        # puzzle.
        assert picture.size in {pixels.shape[1::-1] for pixels in images} or name in ("crop", "jigsaw")
    *lines, last = command("tools", "run", name, *words, code=0).out.splitlines()
    assert "\n".join(lines) == data["text"]
    assert last == f"confidence {data['confidence']:.2f}, classical backend, version {data['version']}"


def test_an_image_file_beyond_the_limit_is_not_read(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (9, 9)).save(tmp_path / "large.png")
    monkeypatch.setattr(images, "MAX_BYTES", 20)
    result = command("tools", "run", "markers", tmp_path / "large.png", code=2)
    assert f"{tmp_path}/large.png has " in result.err
    assert "at most 20 are read" in result.err
    command("tools", "gallery", tmp_path, "-o", "page")
    assert "at most 20 are read" in Path("page/index.html").read_text()
