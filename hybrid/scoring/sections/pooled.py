"""What is the effect of tools over all models?

Each value is a random-effects mean of the models' own differences, which treats the models as a sample from a larger
population. tau: how much the true effects differ between models. one more model: the range that contains 95 % of the
effects of further such models. If a model has several solvers with tools, only the first counts.

n: models
source: Paule and Mandel 1982; Hartung and Knapp 2001; Higgins et al. 2009; hybrid/stats/pooling.py

- gain (-1 to 1) = pooled difference of with tools and alone
- effect of offering (-1 to 1) = pooled difference of blank tools and alone
- effect of output (-1 to 1) = pooled difference of with tools and blank tools
- <gain|effect of offering|effect of output>: tau = standard deviation of the true effects between models
- <gain|effect of offering|effect of output>: I2 = share of the variation between models that is not sampling error
- <gain|effect of offering|effect of output>: p of heterogeneity = probability of this much variation by sampling
  alone, by Cochran's Q
- <gain|effect of offering|effect of output>: one more model (-1 to 1) = the pooled difference; the interval is that of
  the effect of one more model

The standard error of a model's difference is that of `differences.py`, half the 95 % interval over its quantile of the
normal distribution. All models answer the same questions, so the interval generalises to other models on these
questions, not to other questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Final

from hybrid.core.types import Metric
from hybrid.scoring.compare import Comparison
from hybrid.scoring.definitions import statistic
from hybrid.scoring.parts import EFFECTS, ToolEffect, tool_effects
from hybrid.scoring.result import FRACTION, Family, Result, adjusted
from hybrid.scoring.sections.equivalence import HANGS
from hybrid.scoring.tally import OTHER
from hybrid.stats import Pooled, contrast, ends_of, pooled_effect

NAME: Final = "pooled"
TAU, I2, P_Q, NEXT = "tau", "I2", "p of heterogeneity", "one more model"


def rows(comparison: Comparison) -> list[Result]:
    """Return each effect that at least two models have; no rows for a single model."""
    results = [row for quantity in EFFECTS for row in _pooled(quantity, _effects_of(comparison, quantity))]
    return adjusted(results, lambda row: Family("pooled effects"))


def _effects_of(comparison: Comparison, quantity: str) -> dict[str, ToolEffect]:
    """Return each model's effect of this name, from its first solver with tools whose effect can be tested."""
    by_model: dict[str, ToolEffect] = {}
    for group in comparison.groups:
        for effect in tool_effects(comparison, group):
            if effect.quantity == quantity and effect.is_share and not effect.why_untested and group.hybrid.model:
                by_model.setdefault(group.hybrid.model, effect)
    return by_model


def _pooled(quantity: str, by_model: dict[str, ToolEffect]) -> Iterator[Result]:
    pairs = {model: pair for model, effect in by_model.items() if (pair := _with_error(*effect.metrics))}
    if len(pairs) < 2:
        return
    first = by_model[next(iter(pairs))]
    pooled = _pool(list(pairs.values()))
    row = replace(first.row(NAME), a="", b="", unit=FRACTION, n=len(pairs)).noted(", ".join(pairs))
    low, high = ends_of(pooled.interval)
    if (
        low is not None
        and high is not None
        and all(metric.share for pair in by_model.values() for metric in pair.metrics)
    ):
        # With two models the interval has one degree of freedom, and may exceed any possible difference of shares.
        low, high = max(-1.0, low), min(1.0, high)
    summary = replace(row, value=pooled.value, low=low, high=high, p=pooled.p_value)
    yield summary.noted("" if _side(_by_other_rule(by_model, pairs)) == _side(pooled) else HANGS)
    yield replace(row, quantity=f"{quantity}: {TAU}", value=pooled.tau)
    yield replace(row, quantity=f"{quantity}: {I2}", value=pooled.i2)
    yield replace(row, quantity=f"{quantity}: {P_Q}", unit="probability", value=pooled.p_q)
    if pooled.predicted is not None:
        low, high = ends_of(pooled.predicted)
        yield replace(row, quantity=f"{quantity}: {NEXT}", value=pooled.value, low=low, high=high)


def _with_error(a: Metric, b: Metric) -> tuple[float, float] | None:
    """Return a difference and its standard error; None without a standard error."""
    test = contrast(a, b)
    if test.difference is None or test.interval is None or test.interval.high <= test.interval.low:
        return None
    return test.difference, (test.interval.high - test.interval.low) / 2 / NormalDist().inv_cdf(0.975)


def _by_other_rule(by_model: dict[str, ToolEffect], models: Iterable[str]) -> Pooled | None:
    """Return the pooled effect if unanswered questions count by the other rule."""
    effects = (by_model[model] for model in models)
    others = [_with_error(*effect.by_rule(OTHER[effect.shared.rule])) for effect in effects]
    pairs = [pair for pair in others if pair is not None]
    return _pool(pairs) if len(pairs) > 1 else None


def _pool(pairs: Sequence[tuple[float, float]]) -> Pooled:
    return pooled_effect([difference for difference, _ in pairs], [error for _, error in pairs])


def _side(pooled: Pooled | None) -> int | None:
    """Return the sign of a pooled effect if it is significant, else 0; None without an interval."""
    if pooled is None or pooled.interval is None:
        return None
    return int(pooled.interval.low > 0) - int(pooled.interval.high < 0)


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """State the pooled effects with their intervals."""
    parts = [
        f"{row.quantity} {100 * (row.value or 0):+.0f} points [{100 * row.low:.0f}, {100 * row.high:.0f}]"
        for row in section_rows
        if row.quantity in EFFECTS and row.low is not None and row.high is not None
    ]
    return f"Over {section_rows[0].n} models: {', '.join(parts)}." if parts else ""


SECTION = statistic(rows, lead, order=2)
