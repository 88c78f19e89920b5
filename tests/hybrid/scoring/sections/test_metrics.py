"""The lead of the section `metrics` ranks only values with an interval."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.scoring.result import FRACTION, Result
from hybrid.scoring.sections import metrics


def named(values: dict[str, tuple[float, float | None]], monkeypatch: pytest.MonkeyPatch) -> str:
    row = Result("metrics", "value", FRACTION, None, metric="accuracy", n=30)
    rows = [
        replace(row, a=name, value=value, low=low, high=None if low is None else value + 0.1)
        for name, (value, low) in values.items()
    ]
    monkeypatch.setattr(metrics, "of_contestants", lambda *_: rows)
    comparison: Any = SimpleNamespace(rule="wrong", solvers=())
    return metrics.lead(comparison, rows)


def test_a_value_without_an_interval_is_not_the_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    lead = named({"mllm": (0.5, 0.4), "controller": (0.6, 0.5), "specialist": (0.9, None)}, monkeypatch)
    assert lead.startswith("controller has the highest accuracy, 0.600 (95% CI [0.50, 0.70]), over n = 30; ")
    assert "; not ranked (no interval): specialist." in lead


def test_without_any_interval_the_highest_value_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    lead = named({"mllm": (0.5, None), "specialist": (0.9, None)}, monkeypatch)
    assert lead.startswith("specialist has the highest accuracy, 0.900, over n = 30. ")
