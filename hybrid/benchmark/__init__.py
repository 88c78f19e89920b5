"""The public names for a benchmark outside of the project: its base class, its card and the values that it scores.

    from hybrid.benchmark import Benchmark, BenchmarkCard, Question, Score

`docs/in-the-tree.md` shows a benchmark that imports nothing else.
"""

from hybrid.answers import parse
from hybrid.benchmarks.base import AS_PAPERS, Benchmark, ScoreOptions, Source, accuracy, show, unanswered
from hybrid.benchmarks.card import BenchmarkCard, MetricCard, metric_of
from hybrid.core.errors import DataError
from hybrid.core.types import (
    LETTERS,
    Ask,
    Box,
    BrokenQuestion,
    Cell,
    Exchange,
    Kind,
    Metric,
    Outcome,
    Point,
    Prompt,
    Question,
    Reply,
    Score,
)

__all__ = [
    "AS_PAPERS",
    "LETTERS",
    "Ask",
    "Benchmark",
    "BenchmarkCard",
    "Box",
    "BrokenQuestion",
    "Cell",
    "DataError",
    "Exchange",
    "Kind",
    "Metric",
    "MetricCard",
    "Outcome",
    "Point",
    "Prompt",
    "Question",
    "Reply",
    "Score",
    "ScoreOptions",
    "Source",
    "accuracy",
    "metric_of",
    "parse",
    "show",
    "unanswered",
]
