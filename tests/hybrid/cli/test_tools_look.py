"""`hybrid tools gallery`, `new` and `cache` as a user calls them."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from PIL import Image

from hybrid.cli import cli
from hybrid.core.errors import UsageError
from tests.tables import cases


def photos(folder: Path) -> Path:
    """Return a folder with two pictures of noise and a file that is not a picture."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    for name in ("a.png", "c.png"):
        Image.fromarray(rng.integers(0, 255, (60, 80, 3), dtype=np.uint8)).save(folder / name)
    (folder / "b<b>.jpg").write_bytes(b"no image")
    return folder


def gallery(folder: Path, out: Path, *words: str) -> Result:
    return CliRunner().invoke(cli, ["tools", "gallery", str(folder), "-o", str(out), "--backend", "classical", *words])


@pytest.mark.system
def test_gallery_makes_a_page_and_one_broken_image_costs_only_itself(tmp_path: Path) -> None:
    out = tmp_path / "page"
    points = 'segmentation={"points": [{"x": 40, "y": 30}]}'
    result = gallery(photos(tmp_path / "photos"), out, "--args", points)
    assert result.exit_code == 0, result.output
    page = (out / "index.html").read_text()
    titles = re.findall(r"<h2><bdi>(.*?)</bdi> <small>(.*?)</small></h2>", page)
    assert titles == [("a.png", "80 x 60 px"), ("b&lt;b&gt;.jpg", ""), ("c.png", "80 x 60 px"), ("a.png and c.png", "")]
    assert "not an image" in page
    assert "b<b>" not in page
    figures = re.findall(r"<figcaption>.*?<b>(.*?)</b>", page)
    assert [figures.count(name) for name in ("the image itself", "saliency", "segmentation", "motion")] == [2, 2, 2, 1]
    assert (
        "Not run, because they need arguments (--args TOOL=JSON): attributes, detection, localization, relation."
        in page
    )
    seen = set(re.findall(r'src="(.*?)"', page))
    assert {"001.jpg", "001-saliency.png", "003-segmentation.png", "001-crop-4.png", "001-003-similarity.png"} <= seen
    assert seen == {path.name for path in out.iterdir()} - {"index.html"}


@pytest.mark.parametrize(*cases(__file__, "test_wrong_arguments_end_the_gallery_before_it_starts"))
def test_wrong_arguments_end_the_gallery_before_it_starts(tmp_path: Path, words: str, message: str) -> None:
    result = gallery(photos(tmp_path / "photos"), tmp_path / "page", "--args", words)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)
    assert not (tmp_path / "page").exists()
