"""`hybrid tools gallery`, `new` and `cache`, as a person calls them."""

import subprocess
import sys
from pathlib import Path

import numpy as np
from click.testing import CliRunner
from PIL import Image

from hybrid.cli import cli


def test_gallery_makes_a_page_and_one_broken_image_costs_only_itself(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    Image.fromarray(rng.integers(0, 255, (60, 80, 3), dtype=np.uint8)).save(folder / "a.png")
    (folder / "b<b>.jpg").write_bytes(b"no image")
    out = tmp_path / "page"
    result = CliRunner().invoke(cli, ["tools", "gallery", str(folder), "-o", str(out), "--backend", "classical"])
    assert result.exit_code == 0, result.output
    page = (out / "index.html").read_text()
    assert "a.png" in page
    assert "not an image" in page
    assert "b<b>" not in page
    assert "b&lt;b&gt;.jpg" in page
    assert (out / "001-saliency.png").exists()


def test_a_new_tool_runs_as_it_is_written(tmp_path: Path) -> None:
    result = CliRunner().invoke(cli, ["tools", "new", "image_size", "--folder", str(tmp_path)])
    assert result.exit_code == 0, result.output
    code = (
        "import numpy as np; from image_size import TOOL; from hybrid.tool import Request;"
        "b = TOOL.backend('classical').make(); b.setup('cpu', None);"
        "print(b.run([Request((np.zeros((3, 7, 3), np.uint8),), TOOL.args())])[0].data)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{'size_px': [7, 3]}"
    again = CliRunner().invoke(cli, ["tools", "new", "image_size", "--folder", str(tmp_path)])
    assert "is there already" in str(again.exception)


def test_cache_without_a_command_says_how_much_there_is() -> None:
    result = CliRunner().invoke(cli, ["tools", "cache"])
    assert result.exit_code == 0
    assert "0 findings" in result.output
