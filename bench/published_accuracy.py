"""Estimate `MODEL_WEIGHT` of `hybrid/solving/trust.py`: the spread of models within a task, and across tasks.

    uv run python -m bench.published_accuracy

Reads the cells of BLINK's Table 1 for the test split: 19 models, 14 tasks. `weight` is the number of items that the
mean over models is worth when a model's own accuracy is estimated: a + b of the beta distribution with the mean and
variance of the models' accuracies, after subtracting the variance of counting n items; "all" if no variance is left.
The slope is the regression of a model's distance from the mean of a task (in log-odds) on its distance in one other
task, shrunk by the weight in use.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import mean, median, variance

from bench._frame import options
from hybrid.display.tables import Column, Table, as_text
from hybrid.scoring.published import published
from hybrid.solving.answer_confidence import log_odds
from hybrid.solving.trust import MODEL_WEIGHT

# Accuracy (0..1) and number of items, by task and model.
Accuracies = Mapping[str, Mapping[str, tuple[float, int]]]


def accuracies() -> Accuracies:
    """Return the cells of the table."""
    table: dict[str, dict[str, tuple[float, int]]] = defaultdict(dict)
    for cell in published("blink"):
        item = (cell.source, cell.split, cell.kind) == ("Table 1", "test", "model")
        if item and cell.metric != "accuracy_macro" and cell.n:
            table[cell.metric][cell.who] = (cell.value / 100, int(cell.n))
    return table


def weight(cells: Mapping[str, tuple[float, int]]) -> float:
    """Return the weight of a task's mean, in items; infinite if models differ by no more than chance."""
    values, n = [value for value, _ in cells.values()], next(n for _, n in cells.values())
    usual = mean(values)
    between = variance(values) - usual * (1 - usual) / n
    return usual * (1 - usual) / between - 1 if between > 0 else float("inf")


def slope(result: Accuracies) -> float:
    """Regress a model's distance in one task on that in another, over all pairs of tasks, through the origin."""
    usual = {task: mean(value for value, _ in cells.values()) for task, cells in result.items()}
    pair = squares = 0.0
    for task, cells in result.items():
        for model, (value, n) in cells.items():
            lead = log_odds((value * n + 1) / (n + 2)) - log_odds(usual[task])
            for other in result.keys() - {task}:
                if model in result[other]:
                    text, items = result[other][model]
                    shrunk = (text * items + MODEL_WEIGHT * usual[other]) / (items + MODEL_WEIGHT)
                    other_lead = log_odds(shrunk) - log_odds(usual[other])
                    pair, squares = pair + lead * other_lead, squares + other_lead * other_lead
    return pair / squares


def main() -> None:
    """Print the table."""
    options(__doc__, {})
    result = accuracies()
    weights = {task: weight(cells) for task, cells in result.items()}
    rows = tuple(
        (task, str(len(cells)), f"{mean(value for value, _ in cells.values()):.3f}", f"{weights[task]:.0f}")
        for task, cells in result.items()
    )
    columns = (Column("task", "left"), Column("models"), Column("mean"), Column("weight"))
    print(as_text(Table("BLINK, Table 1, test split", columns, rows)))
    print(f"weight: least {min(weights.values()):.0f} (in use: {MODEL_WEIGHT}), median {median(weights.values()):.0f}")
    print(f"one other task tells {slope(result):.2f} of the distance (in use: nothing)")


if __name__ == "__main__":
    main()
