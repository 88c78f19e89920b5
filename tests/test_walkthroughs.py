"""The pages on adding a baseline, a graph and a benchmark, followed to the letter in a copy of the checkout.

Their files are written, their commands run, and what they write is formatted, linted and tested like the rest.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
FILE = re.compile(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)\)")
FENCE = re.compile(r"^```(\w*)$", re.MULTILINE)
PAGES = ("add-a-baseline", "add-a-graph", "add-a-benchmark")
BEFORE = {"add-a-benchmark": ["CONTRIBUTING.md"]}
"""What a page asks its reader to have followed."""
SAID = {
    "add-a-baseline": [
        ("hybrid run blink", "first_option"),
        ("hybrid compare runs/first", "first_option"),
        ("hybrid run blink", "joined"),
        ("hybrid compare runs/joined", "joined"),
    ],
    "add-a-graph": [
        ("hybrid run blink", "second_look"),
        ("hybrid compare runs/look --baseline", "second_look"),
        ("hybrid run blink", "blank"),
        ("hybrid compare runs/look runs/blank", "blank"),
    ],
    "add-a-benchmark": [
        ("hybrid benchmarks show shades", "Random"),
        ("hybrid run shades", "specialist"),
        ("hybrid score runs/shades-alone", "1.000"),
        ("hybrid compare runs/shades-alone --published", "Random"),
    ],
}
"""How each command of a page begins, in order, and a word of what it prints."""


def text_of(page: str) -> str:
    return (ROOT / page).read_text()


def copy_of_the_checkout(to: Path) -> None:
    """The files that git knows, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)


def write_files(page: str, to: Path) -> list[str]:
    """Write the files of a page, none of which is there yet; their names."""
    written = FILE.findall(text_of(page))
    for name, text in written:
        assert not (to / name).exists(), name
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text)
    return [name for name, _ in written]


def said_in(copy: Path, *command: str) -> str:
    """What a command prints in the copy; it must succeed."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "HYBRID_HOME": str(copy / "home"), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"{command}: {done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "page",
    # What asks the demonstration model takes over a minute.
    [pytest.param(page, marks=[] if page in BEFORE else [pytest.mark.slow]) for page in PAGES],
)
def test_every_command_of_a_page_runs(page: str, tmp_path: Path) -> None:
    copy_of_the_checkout(tmp_path)
    for before in BEFORE.get(page, []):
        write_files(before, tmp_path)
    pixels = np.full((60, 80, 3), 200, np.uint8)
    pixels[30:, :40] = 20
    (tmp_path / "shades").mkdir(exist_ok=True)
    Image.fromarray(pixels).save(tmp_path / "shades" / "photo.png")
    written = [name for name in write_files(f"docs/{page}.md", tmp_path) if name.endswith(".py")]
    assert written
    lines = [line for block in COMMANDS.findall(text_of(f"docs/{page}.md")) for line in block.splitlines()]
    assert len(lines) == len(SAID[page])
    for line, (start, word) in zip(lines, SAID[page], strict=True):
        assert line.startswith(start)
        assert word in said_in(tmp_path, *shlex.split(line)), line
    if shutil.which("ruff"):
        said_in(tmp_path, "ruff", "check", *written)
        said_in(tmp_path, "ruff", "format", "--check", *written)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_written_or_run(page: str) -> None:
    text = text_of(f"docs/{page}.md")
    opened = [word for word in FENCE.findall(text) if word]
    assert len(opened) == len(FILE.findall(text)) + len(COMMANDS.findall(text))


@pytest.mark.parametrize("page", [*PAGES, "glossary"])
def test_links_of_a_page_lead_somewhere(page: str) -> None:
    for link in LINK.findall(text_of(f"docs/{page}.md")):
        assert (ROOT / "docs" / link).is_file(), link
