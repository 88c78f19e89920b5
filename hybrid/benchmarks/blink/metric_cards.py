"""Definitions of BLINK's metrics (`hybrid benchmarks show blink`)."""

from __future__ import annotations

from hybrid.benchmarks.card import MetricCard

METRICS = (
    MetricCard(
        "accuracy_macro",
        "mean over the tasks asked of (right answers / questions of the task)",
        "questions",
        "paper, Tables 1 and 4, the mean over all tasks; equality with the answer as in the repository's eval/",
        "The paper does not print how it averages: with the unweighted mean the totals of all 19 models of Table 4 "
        "come out of the published outputs.",
    ),
    MetricCard("accuracy_micro", "right answers / questions", "questions", "ours: every question weighs the same"),
)
