"""The accuracy that an MLLM is assumed to have on BLINK without a measurement follows from the printed table."""

from __future__ import annotations

from statistics import mean

import pytest

from hybrid.benchmarks.blink import BENCHMARK
from hybrid.scoring.published import published

# The models over whose printed cells the card's accuracies are averaged.
ASKED_THROUGH_AN_API = ("GPT-4V", "GPT-4 Turbo", "GPT-4o", "Gemini Pro", "Claude 3 OPUS")


def test_prior_accuracies_are_the_means_of_the_printed_cells() -> None:
    card = BENCHMARK.card
    rows = [row for row in published("blink") if (row.source, row.split) == ("Table 1", "test")]
    printed = {
        task: mean(row.value / 100 for row in rows if row.metric == task and row.who in ASKED_THROUGH_AN_API)
        for task in card.tasks
    }
    del printed["Relative_Reflectance"]
    assert card.prior_accuracy.accuracy == pytest.approx(printed, abs=1e-4)
