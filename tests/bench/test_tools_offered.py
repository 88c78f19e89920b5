"""Output of `bench/tools_offered.py`: the specification of all tools is small, and that of each menu is smaller."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.tools_offered import main
from hybrid.models.tokens import tools_json
from hybrid.plugins.registry import load, names


def test_all_tools_are_one_small_menu_and_each_benchmarks_is_smaller(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["--json", str(tmp_path / "menu.json")])
    rows: dict[str, Any] = {row["name"]: row for row in json.loads((tmp_path / "menu.json").read_text())["sizes"]}
    all_tools = rows["all tools"]
    assert all_tools["json_bytes"] == len(tools_json([load("tools", name) for name in names("tools")]).encode())
    # All tools take 2,997 tokens of o200k_base. A few more bytes are acceptable; another long description is not.
    assert all_tools["json_bytes"] < 12_600
    assert all_tools["text_bytes"] < 8_300
    assert all(row["json_bytes"] < all_tools["json_bytes"] for name, row in rows.items() if name.startswith("menu of "))
    printed = capsys.readouterr().out
    assert all(name in printed for name in rows)


def test_an_encoding_that_is_not_there_is_not_fetched(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="does not hold o200k_base"):
        main(["--encodings", str(tmp_path)])
