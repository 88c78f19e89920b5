"""The public names for a benchmark outside of the project: its base class, its card and the values that it scores.

    from hybrid.benchmark import Benchmark, BenchmarkCard, Question, Score

`docs/in-the-tree.md` shows a benchmark that imports nothing else.
"""

from hybrid.benchmarks.base import AS_PAPERS, Benchmark, ScoreOptions, Source, accuracy, unanswered
from hybrid.benchmarks.card import BenchmarkCard, MetricCard
from hybrid.core.types import LETTERS, Exchange, Kind, Metric, Outcome, Question, Score

__all__ = [
    "AS_PAPERS",
    "LETTERS",
    "Benchmark",
    "BenchmarkCard",
    "Exchange",
    "Kind",
    "Metric",
    "MetricCard",
    "Outcome",
    "Question",
    "Score",
    "ScoreOptions",
    "Source",
    "accuracy",
    "unanswered",
]
