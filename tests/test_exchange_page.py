"""Every command of docs/exchange.md, run in the order of the page, and its table of columns."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from hybrid.cli import cli
from hybrid.exporting.parquet import COLUMNS
from hybrid.registry import names

PAGE = (Path(__file__).resolve().parents[1] / "docs" / "exchange.md").read_text()
BLOCKS = re.findall(r"^```bash( inspect)?\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_commands_run_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    installed = importlib.util.find_spec("inspect_ai") is not None
    lines = [line for extra, block in BLOCKS if installed or not extra for line in block.splitlines()]
    assert len(lines) >= 7
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "hybrid"
        assert cli.main(words, standalone_mode=False) == 0, line
        if words[0] == "export":
            assert (tmp_path / words[words.index("-o") + 1]).exists()


def test_every_format_and_column_is_on_the_page() -> None:
    formats = set(re.findall(r"^\| `(\w+)` \| [^|]+ \| (?:one|all) \|", PAGE, re.MULTILINE))
    assert formats == set(names("hybrid.exporting"))
    table = PAGE.split("| column | type | holds |\n| :--- | :--- | :--- |\n")[1].split("\n\n")[0]
    assert table.splitlines() == [f"| `{one.name}` | {one.type} | {one.about} |" for one in COLUMNS]
