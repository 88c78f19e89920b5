"""The table of all rules: one file a benchmark, and no route that two files answer differently."""

from typing import Any

import pytest

import tools.rules
from hybrid.registry import load, names
from tools.rules import rules


@pytest.fixture(autouse=True)
def fresh_table() -> Any:
    rules.cache_clear()
    yield
    rules.cache_clear()


def test_every_file_is_a_benchmark_and_adds_its_rules() -> None:
    files = names("tools.rules")
    assert set(files) <= set(names("hybrid.benchmarks"))
    assert len(files) == 5
    assert set(rules()) == {route for name in files for route in load("tools.rules", name)}


def test_a_route_that_two_files_answer_differently_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load("tools.rules", "mm_sap"), "choice", load("tools.rules", "blink")["Jigsaw"])
    with pytest.raises(ValueError, match=r"tools/rules/mm_sap\.py: another file has another rule for 'choice'"):
        tools.rules.rules()
