"""The headline of `hybrid calibrate`: which tool is right most often, within 40 lines of 80 columns."""

import pytest

from hybrid.scoring.calibrate_tables import as_json, by_route, headline
from hybrid.solving.trust import MODEL, Key, Measurement


def test_the_routes_of_a_tool_are_counted_together() -> None:
    rows: list[tuple[Key, Measurement]] = [
        (("depth", "classical", "near"), Measurement(3.0, 4)),
        (("depth", "classical", "far"), Measurement(1.0, 6)),
        (("jigsaw", "classical", "halves"), Measurement(9.0, 10)),
        ((*MODEL, "near"), Measurement(2.0, 4)),
    ]
    lines = headline(rows)
    assert lines[0] == "Right most often: jigsaw (9 of 10); least often: depth (4 of 10)."
    assert lines[1] == "The MLLM alone: 2 of 4."
    assert [line.split()[:5] for line in lines[5:8]] == [
        ["depth", "classical", "2", "4/10", "0.400"],
        ["jigsaw", "classical", "1", "9/10", "0.900"],
        ["mllm", "model", "1", "2/4", "0.500"],
    ]
    assert len(by_route(rows).rows) == len(as_json(rows)) == 4


def test_graded_answers_have_no_interval() -> None:
    rows: list[tuple[Key, Measurement]] = [(("scanpath", "classical", "free"), Measurement(2.5, 4))]
    (told,) = as_json(rows)
    assert isinstance(told, dict)
    assert (told["reliability"], told["low"], told["high"]) == (0.625, None, None)
    assert headline(rows)[0] == "Right: scanpath (2.5 of 4)."


@pytest.mark.parametrize("tools", [1, 24, 90])
def test_it_stays_within_40_lines_of_80_columns(tools: int) -> None:
    rows = [
        ((f"{place:02}_a_tool_with_a_long_name", "a_backend_with_one", "route"), Measurement(1234.5678, 1901))
        for place in range(tools)
    ]
    lines = headline(rows)
    assert len(lines) <= 40
    assert all(len(line) <= 80 for line in lines)
    assert ("and 66 more" in lines) is (tools == 90)
