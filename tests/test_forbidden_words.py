"""No text for a model names a benchmark, its data, results on it, or how this project is made."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli._tool_card import _card
from hybrid.core.format_lines import FORMAT_LINES
from hybrid.models.text_protocol import describe
from hybrid.models.toolspec import spec
from hybrid.plugins.registry import load, load_solver, names, solver_names
from tests.tables import cases

ROOT = Path(__file__).resolve().parents[1]
TOOLS = names("tools")


@pytest.mark.parametrize(*cases(__file__, "test_what_is_forbidden_is_seen"))
def test_what_is_forbidden_is_seen(forbidden_words: Any, text: str) -> None:
    assert forbidden_words.unfit(text)


def test_what_describes_a_tool_is_not(forbidden_words: Any) -> None:
    fit = "Rings of 4 to 20 px, views over 50 degrees apart (at most 16 items, default []), 1 = nearest, 0 = farthest."
    assert forbidden_words.unfit(fit) == []
    text = "2 of 3 seam measures agree; 12 matches, 63 % of them fit."
    assert forbidden_words.unfit(text)
    assert forbidden_words.unfit(text, finding=True) == []


@pytest.mark.parametrize("name", TOOLS)
def test_the_description_of_a_tool(forbidden_words: Any, name: str) -> None:
    tool = load("tools", name)
    assert forbidden_words.unfit(json.dumps(spec(tool), ensure_ascii=False)) == []
    assert forbidden_words.unfit(describe([tool])) == []
    assert tool.card.limits.endswith(".")


@pytest.mark.parametrize("name", TOOLS)
def test_people_read_what_was_measured(name: str) -> None:
    card = load("tools", name).card
    flat = " ".join(" ".join(_card(load("tools", name))).split())
    assert f"Measured: {card.measured or 'nothing except the counts below'}" in flat
    if card.measured:
        assert card.measured not in json.dumps(spec(load("tools", name)), ensure_ascii=False)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


@pytest.mark.parametrize("name", solver_names())
def test_what_a_solver_says(forbidden_words: Any, name: str) -> None:
    assert [result for text in _texts(dict(load_solver(name).texts)) for result in forbidden_words.unfit(text)] == []


# Files that no model reads: training settings, option texts, templates, benchmark cards, kinds of plug-ins, strokes of
# letters, table columns, the server's schema, and messages of servers.
UNREAD = {
    *("training", "config", "cli", "templates", "card.toml", "columns.toml", "server.toml"),
    *("kinds.toml", "drawing.toml", "failures.toml", "terms.toml"),
}
PROMPTS = sorted(path for path in (ROOT / "hybrid").rglob("*.toml") if not UNREAD & set(path.parts))


@pytest.mark.parametrize("path", PROMPTS, ids=lambda p: p.relative_to(ROOT / "hybrid").as_posix())
def test_what_our_prompts_say(forbidden_words: Any, path: Path) -> None:
    # The origin of a style is only shown to people.
    read = {key: value for key, value in tomllib.loads(path.read_text()).items() if key != "source"}
    texts = list(_texts(read))
    assert texts
    assert [result for text in texts for result in forbidden_words.unfit(text)] == []


def test_the_format_lines(forbidden_words: Any) -> None:
    assert [result for line in FORMAT_LINES.values() for result in forbidden_words.unfit(line)] == []
