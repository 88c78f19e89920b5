"""The table of all rules: those next to the tools and those that join several, and no route with two of them."""

import pytest

from hybrid.registry import load, names
from hybrid.solving.rules import table


def test_each_rule_lies_next_to_its_one_tool_or_joins_several() -> None:
    joined = {route: rule for name in names("tools.rules") for route, rule in load("tools.rules", name).items()}
    alone = {route: (name, rule) for name in names("tools") for route, rule in load("tools", name).rules.items()}
    assert set(names("tools.rules")) <= set(names("hybrid.benchmarks"))
    assert table().rules == joined | {route: rule for route, (_, rule) in alone.items()}
    assert all(len(rule.tools) > 1 for rule in joined.values())
    assert all(rule.tools == (name,) for name, rule in alone.values())
    assert (table().outside, table().notes) == ({}, ())


def test_a_route_with_two_rules_in_the_project_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(load("tools.rules", "mm_sap"), "Jigsaw", load("tools.rules", "mm_sap")["choice"])
    monkeypatch.setattr("hybrid.solving.rules.state", lambda: ("another",))
    with pytest.raises(ValueError, match=r"tools/jigsaw: there is another rule for 'Jigsaw' elsewhere"):
        table()
