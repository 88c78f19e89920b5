"""Tool cards in TOML are read by the tool, listed without importing it, and the same from a worker process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import DataError
from hybrid.core.toml_records import as_data, made_of
from hybrid.plugins.discovery import own_names
from hybrid.plugins.registry import load
from hybrid.tool import Card, Provenance
from hybrid.tool.card_file import CodeElsewhere, card_alone, tool_card
from tests.tables import cases, stored

CARD = stored(__file__, "CARD")


@pytest.fixture
def module(tmp_path: Path) -> Path:
    (tmp_path / "_shared").mkdir()
    family = '[[family]]\nweights = "b/one"\nlicence = "X"\ntrained_on = ["COCO"]\n'
    (tmp_path / "_shared" / "provenances.toml").write_text(family)
    (tmp_path / "shade.toml").write_text(CARD)
    return tmp_path / "shade.py"


def test_rows_of_several_weights_and_of_a_family_become_one_provenance_each(module: Path) -> None:
    card = card_alone(module)
    assert card is not None
    learned, classical = card.backends
    assert learned.provenances == (Provenance("b/one", "X", ("COCO",)),)
    assert [provenance.weights for provenance in classical.provenances] == ["a/small", "a/large"]
    with pytest.raises(RuntimeError, match="worker process"):
        classical.make()


@pytest.mark.parametrize(*cases(__file__, "test_what_does_not_fit_is_refused_by_file_and_line"))
def test_what_does_not_fit_is_refused_by_file_and_line(module: Path, old: str, new: str, message: str) -> None:
    class Gone: ...

    module.with_suffix(".toml").write_text(CARD.replace(old, new, 1))
    with pytest.raises(DataError) as refused:
        tool_card(str(module), str, Gone)
    assert message in str(refused.value)


@pytest.mark.parametrize("name", sorted(own_names("tools")))
def test_the_card_alone_and_the_card_as_data_say_what_the_tool_says(name: str) -> None:
    card: Card = load("tools", name).card
    file = Path(str(sys.modules[f"tools.{name}"].__file__))
    text: Any = as_data(card)
    for other in (card_alone(file), made_of(text, Card, CodeElsewhere())):
        assert other is not None
        assert hash(other) is not None
        assert without_code(as_data(other)) == without_code(text)


def without_code(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_code(item) for key, item in value.items() if key not in ("make", "args", "given")}
    return [without_code(entry) for entry in value] if isinstance(value, list) else value


@pytest.mark.system
def test_tools_are_listed_without_an_import_of_any() -> None:
    code = "import sys; from hybrid.cli.tools import list_; list_.main([], standalone_mode=False)\n"
    code += "print([name for name in sys.modules if name.startswith('tools.')], file=sys.stderr)"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stderr.strip().splitlines()[-1] == "[]"
    assert len(result.stdout.splitlines()) == len(own_names("tools"))
