"""The plan of an ablation: the menus that are tested, and the total cost of their runs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.core.errors import UsageError
from hybrid.plugins.registry import names
from hybrid.running.ablation import ablation, tools_of
from tests.tables import cases

TOOLS_OFFERED = st.lists(st.sampled_from(names("tools")), min_size=1, max_size=8, unique=True)


@given(TOOLS_OFFERED, st.data())
def test_every_tool_is_left_out_once_and_alone_once(tools_offered: list[str], data: st.DataObject) -> None:
    vary = data.draw(st.one_of(st.none(), st.lists(st.sampled_from(tools_offered), min_size=1)))
    leave_out, add_one = data.draw(st.sampled_from([(True, True), (True, False), (False, True)]))
    plan = ablation(tools_offered, vary, leave_out=leave_out, add_one=add_one)
    values = [tools_of(run) for run in plan.runs]
    assert plan.tools_offered == values[0] == tuple(tools_offered)
    assert () in values
    # No menu is tested twice, and each has its tools in the order of the full menu.
    assert len(set(values)) == len(values)
    assert all(offers == tuple(name for name in tools_offered if name in offers) for offers in values)
    varied = set(tools_offered if vary is None else vary)
    items = {tuple(tools_offered), ()}
    if leave_out:
        items |= {tuple(other for other in tools_offered if other != name) for name in varied}
    if add_one:
        items |= {(name,) for name in varied}
    assert set(values) == items


@pytest.mark.parametrize(*cases(__file__, "test_what_cannot_be_ablated_is_refused"))
def test_what_cannot_be_ablated_is_refused(
    tools_offered: tuple[str, ...], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ablation(tools_offered, **options)
