"""docs/add-a-tool.md, followed from top to bottom in an empty folder: its files are written and its commands run."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "add-a-tool.md").read_text()
STEP = re.compile(
    r"^`(?P<file>[\w./]+)`\n\n```python\n(?P<text>.*?)^```|^```bash\n(?P<commands>.*?)^```", re.MULTILINE | re.DOTALL
)
MODULES = {"hybrid": ("-m", "hybrid"), "pytest": ("-m", "pytest", "-p", "no:cacheprovider"), "python": ()}
"""How Python is asked for the programs that the page names."""
SAID = {
    "hybrid tools new tally": "wrote my_tools/tally.py",
    "hybrid tools show tally": "Counts the separate things of one colour",
    "hybrid tools run tally": "Separate red things: 1.",
    "hybrid tools check tally --tool-path": "0 of 1 wrong",
    "hybrid tools check tally --contract": "tally: keeps the contract",
    "pytest": "2 passed",
    "python measure.py": "".join(re.findall(r"^It prints `(.+?)`", PAGE, re.MULTILINE)),
    "hybrid run blink": "controller",
}
"""What the commands of the page print, by how they begin."""


def test_the_page_works_as_it_is_written(tmp_path: Path) -> None:
    pixels = np.full((60, 80, 3), 128, np.uint8)
    pixels[20:40, 20:40] = (220, 0, 0)
    Image.fromarray(pixels).save(tmp_path / "photo.png")
    lines = []
    for step in STEP.finditer(PAGE):
        if step["file"]:
            (tmp_path / step["file"]).write_text(step["text"])
        for line in (step["commands"] or "").splitlines():
            lines.append(next(start for start in SAID if line.startswith(start)))
            assert SAID[lines[-1]], "the page says what is measured"
            assert SAID[lines[-1]] in said_in(tmp_path, line), line
    assert lines == list(SAID)


def said_in(folder: Path, line: str) -> str:
    """What a command of the page prints there."""
    program, *words = shlex.split(line)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HYBRID_HOME": str(folder / "home")}
    environment.pop("HYBRID_TOOL_PATH", None)
    done = subprocess.run(
        [sys.executable, *MODULES[program], *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{line}: {done.stdout}\n{done.stderr}"
    return done.stdout
