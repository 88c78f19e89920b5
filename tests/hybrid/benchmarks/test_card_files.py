"""A benchmark's `card.toml` is read on demand, errors name the line, and metrics are computed as its rows say."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hybrid.benchmarks.card import MetricCard, Ratio, ratios
from hybrid.core.types import Outcome, Score
from hybrid.plugins.registry import load, names
from tests.tables import cases

CARD = """name = "shades"
title = "Shades"
citation = "an example"
licence = "Apache-2.0"
image_sources = []
splits = ["test"]
[tasks]
darkest = 0
[[metrics]]
name = "accuracy"
formula = "right answers / questions"
counts = "questions"
source = "ours"
ratio.of = "correct"
"""
MODULE = """from hybrid.benchmarks.base import Benchmark
class Shades(Benchmark):
    def tasks(self, source): return ("darkest",)
    def files(self, source): return ()
    def questions(self, source): return iter(())
    def score(self, question, exchanges, options): raise NotImplementedError
    def score_stored(self, question, stored, options=None): raise NotImplementedError
BENCHMARK = Shades()
"""


def hybrid(*words: str) -> tuple[int, str]:
    result = subprocess.run([sys.executable, "-m", "hybrid", *words], capture_output=True, text=True, check=False)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.system
def test_no_card_is_read_at_import() -> None:
    values = [name for name in names("hybrid.benchmarks") if load("hybrid.benchmarks", name).card.settings]
    code = f"""
from importlib import import_module
print([name for name in {values} if "card" in vars(import_module("hybrid.benchmarks." + name).BENCHMARK)])
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.system
def test_a_benchmark_from_outside_may_have_its_card_in_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "benchmarks" / "shades"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(MODULE)
    (folder / "card.toml").write_text(CARD)
    assert "Shades" in hybrid("benchmarks", "show", "shades", "--path", str(tmp_path))[1]
    (folder / "card.toml").write_text(CARD.replace("ratio.of", "ratio.off"))
    code, text = hybrid("benchmarks", "show", "shades", "--path", str(tmp_path))
    assert (code, "card.toml, line 14: metrics.ratio.off: Ratio has no such key (did you mean 'of'?)" in text) == (
        2,
        True,
    )
    code, text = hybrid("benchmarks", "show", "blink", "--path", str(tmp_path))
    assert (code, "BLINK: Multimodal" in text) == (0, True)


def score(identity: str, task: str, correct: float, **values: float) -> Score:
    groups = {"pair": identity[0], "mode": identity[1]}
    return Score(identity, task, correct, Outcome.ANSWERED, values=values, groups=groups)


SCORES = (
    score("1a", "x", 1.0, hits=2, clues=3),
    score("1b", "y", 1.0, hits=0, clues=1),
    score("2a", "y", 1.0, hits=1, clues=4),
    replace(score("2b", "x", 0.0), outcome=Outcome.OUTAGE),
    score("3a", "x", 0.0),
)


@pytest.mark.parametrize(*cases(__file__, "test_a_metric_is_computed_as_its_row_says", ratio=lambda row: Ratio(**row)))
def test_a_metric_is_computed_as_its_row_says(
    name: str, ratio: Ratio, expected: dict[str, tuple[float | None, int]]
) -> None:
    built = ratios([MetricCard(name, "", "", "", ratio=ratio)], SCORES, {"task": ("y", "x")})
    by_name = {metric.name: (metric.value, metric.n) for metric in built}
    assert by_name == {
        key: (pytest.approx(value), n) if value is not None else (None, n) for key, (value, n) in expected.items()
    }
    assert list(by_name) == list(expected)
