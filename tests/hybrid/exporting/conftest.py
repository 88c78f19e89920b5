"""A run with traces, tool calls and images in the store, for formats that keep everything."""

from pathlib import Path

import pytest

from hybrid.cli import cli


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the specialist and of chance on generated BLINK questions; its images are in `home/images` beside it."""
    folder = tmp_path_factory.mktemp("traced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HYBRID_HOME", str(folder / "home"))
        text = "run blink --data sample --task Jigsaw --task Relative_Depth --limit 4 --backend classical"
        words = f"{text} --solver specialist --solver chance --out {folder / 'run'}".split()
        cli.main(words, standalone_mode=False)
    return folder / "run"
