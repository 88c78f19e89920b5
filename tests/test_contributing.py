"""CONTRIBUTING.md, followed to the letter in a copy of the checkout: its files are written and its commands run."""

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
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FILE = re.compile(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINE = re.compile(r"^`([\w./]+)`, in `(\w+)`\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)


def copy_of_the_checkout(to: Path) -> None:
    """The files that git knows, as they are now."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)


def follow(to: Path) -> set[str]:
    """Write what the page says; the folders that it touches, two levels deep, and the single lines it adds."""
    touched = set()
    for name, text in FILE.findall(PAGE):
        assert not (to / name).exists(), name
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        (to / name).write_text(text)
        touched.add(str(Path(name).parent))
    for name, table, line in LINE.findall(PAGE):
        assert line.count("\n") == 1
        before = (to / name).read_text()
        (to / name).write_text(re.sub(rf"^({table}\b.*\{{\n)", rf"\g<1>{line}", before, count=1, flags=re.MULTILINE))
        assert len((to / name).read_text().splitlines()) == len(before.splitlines()) + 1
        touched.add(f"{name} +1")
    return touched


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The copy, with a photograph whose lower left quarter is the darkest."""
    copy = tmp_path_factory.mktemp("checkout")
    copy_of_the_checkout(copy)
    assert follow(copy) == {"tools/quarters", "tools/rules/blink.py +1", "hybrid/benchmarks/shades", "shades"}
    pixels = np.full((60, 80, 3), 200, np.uint8)
    pixels[30:, :40] = 20
    Image.fromarray(pixels).save(copy / "photo.png")
    shutil.copy(copy / "photo.png", copy / "shades")
    return copy


def said_in(copy: Path, *command: str) -> str:
    """What a command prints in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(copy), "HYBRID_HOME": str(copy / "home")}
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
    return done.stdout


SAID = {
    "hybrid tools show quarters": "a small black thing in a bright quarter is not seen",
    "hybrid tools run quarters photo.png": "Quarter C is the darkest.",
    "hybrid tools check quarters": "the black quarter",
    "pytest -n 0 tests/tools/test_contract.py -k quarters": "passed",
    "hybrid benchmarks show shades": "Shades: the darkest quarter of a picture",
    "hybrid run shades": "shades",
    "hybrid score runs/shades": "accuracy",
}
"""What the commands of the page print, by how they begin."""


def test_every_command_of_the_page_runs(followed: Path) -> None:
    lines = [line for block in COMMANDS.findall(PAGE) for line in block.splitlines()]
    assert [next(start for start in SAID if line.startswith(start)) for line in lines] == list(SAID)
    for line, words in zip(lines, SAID.values(), strict=True):
        assert words in said_in(followed, *shlex.split(line)), line


def test_the_one_line_is_a_rule(followed: Path) -> None:
    code = "import tools.rules as r; print(r.__file__, r.rules()['IQ_Test'].tool)"
    (followed / "asked_rule.py").write_text(code)
    assert said_in(followed, "asked_rule").split() == [str(followed / "tools" / "rules" / "__init__.py"), "quarters"]


def test_a_new_tool_lies_where_the_page_says(followed: Path) -> None:
    said = said_in(followed, "hybrid", "tools", "new", "blank")
    (written,) = re.findall(r"writes `(tools/NAME\.py)` and `(tests/tools/test_NAME\.py)`", PAGE.replace("\n", " "))
    for place in written:
        target = followed / place.replace("NAME", "blank")
        assert f"wrote {target}" in said
        assert target.is_file()
    assert "2 passed" in said_in(followed, "pytest", "-n", "0", str(target))
