"""The headline of `hybrid calibrate`: which tool is right most often, within 40 lines of 80 columns."""

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
