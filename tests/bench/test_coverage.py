"""The simulation behind docs/statistics.md: its draws have the shares and the correlation that the page's tables
state."""

import json

import numpy as np
import pytest

from bench import _grouped as grouped
from bench import coverage as bench


@pytest.mark.system
def test_every_design_is_measured_and_printed(capsys: pytest.CaptureFixture[str]):
    bench.main(["--simulations", "1", "--json"])
    measured = json.loads(capsys.readouterr().out)
    tables = {item["table"] for item in measured}
    assert tables == {"intervals", "intervals, 0.3 abstained", "differences", "errors"}
    names = {design.name for design in bench.designs()}
    assert {entry["design"] for entry in measured} == names
    lines = bench.printed([bench.Measured(**value) for value in measured])
    assert sum(line.startswith("|") for line in lines) == 2 * 4 + 3 * len(bench.designs()) + len(bench.CLUSTERS)


def test_the_grouped_metrics_count_what_the_tests_say(capsys: pytest.CaptureFixture[str]):
    bench.main(["--grouped", "--simulations", "2", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert {row["clusters"] for row in rows} == set(grouped.CLUSTERS)
    assert len(rows) == len(grouped.CLUSTERS) * sum(len(kind.metrics) for kind in grouped.kinds())
    assert len(grouped.printed([grouped.Grouped(**row) for row in rows])) == 2 + len(rows)
    a, b = (
        bench.metric(bench.Design("", (40,)), np.full(40, number), np.ones(40, dtype=np.int64)) for number in (0, 1)
    )
    measurement = grouped.measured("m", 40, "s", 1.0, [(a, b), (a, b), (a, a), (b, a)])
    assert (measurement.coverage, measurement.linearised, measurement.randomised) == (0.5, 0.75, 0.75)
