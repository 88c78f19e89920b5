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
questions, not to other questions. What withholds the claim about one model's difference withholds it here too, for the
pooled effect by the other rule, over all questions, and on the questions that both answered; also if it is withheld for
each model whose own difference is significant. The row then has the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from statistics import NormalDist
from typing import Final

from hybrid.core.types import Metric
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.definitions import statistic
from hybrid.scoring.headline_pair import NO_CLAIM, AnswerSplit, HeadlinePair, difference_of, hangs_on_rule, is_uneven
from hybrid.scoring.parts import EFFECTS, ToolEffect, tool_effects
from hybrid.scoring.result import FRACTION, Family, Result, adjusted, contrasted
from hybrid.scoring.tally import OTHER
from hybrid.stats import Pooled, ends_of, pooled_effect

NAME: Final = "pooled"
TAU, I2, P_Q, NEXT = "tau", "I2", "p of heterogeneity", "one more model"
_Mean = Callable[[Iterable[Result]], Result]


def rows(comparison: Comparison) -> list[Result]:
    """Return each effect that at least two models have; no rows for a single model."""
    results = [row for quantity in EFFECTS for row in _pooled(comparison, quantity)]
    return adjusted(results, lambda row: Family("pooled effects"))


def _effects_of(comparison: Comparison, quantity: str) -> dict[str, ToolEffect]:
    """Return each model's effect of this name, from its first solver with tools whose effect can be tested."""
    by_model: dict[str, ToolEffect] = {}
    for group in comparison.groups:
        for effect in tool_effects(comparison, group):
            if effect.quantity == quantity and effect.is_share and not effect.why_untested and group.hybrid.model:
                by_model.setdefault(group.hybrid.model, effect)
    return by_model


def _pooled(comparison: Comparison, quantity: str) -> Iterator[Result]:
    by_model = _effects_of(comparison, quantity)
    tested = {model: row for model, effect in by_model.items() if _error_of(row := _difference(effect, effect.metrics))}
    pooled = _pool(tested.values())
    if pooled is None:
        return
    effects = [by_model[model] for model in tested]
    row = replace(effects[0].row(NAME), a="", b="", unit=FRACTION, n=len(effects)).noted(", ".join(tested))
    mean = partial(_mean_row, row, bounded=all(metric.share for effect in effects for metric in effect.metrics))
    summary = mean(tested.values())
    yield replace(summary, no_claim=_why_no_claim(comparison, summary, effects, mean))
    yield replace(row, quantity=f"{quantity}: {TAU}", value=pooled.tau)
    yield replace(row, quantity=f"{quantity}: {I2}", value=pooled.i2)
    yield replace(row, quantity=f"{quantity}: {P_Q}", unit="probability", value=pooled.p_q)
    if pooled.predicted is not None:
        low, high = ends_of(pooled.predicted)
        yield replace(row, quantity=f"{quantity}: {NEXT}", value=pooled.value, low=low, high=high)


def _difference(effect: ToolEffect, metrics: tuple[Metric, Metric]) -> Result:
    return contrasted(effect.row(NAME), *metrics, None)[0]


def _error_of(row: Result) -> float | None:
    """Return the standard error of a difference; None without an interval."""
    if row.value is None or row.low is None or row.high is None or row.high <= row.low:
        return None
    return (row.high - row.low) / 2 / NormalDist().inv_cdf(0.975)


def _pool(differences: Iterable[Result]) -> Pooled | None:
    """Return the random-effects mean of the differences that have an interval; None for fewer than two of these."""
    pairs = [(row.value or 0.0, error) for row in differences if (error := _error_of(row)) is not None]
    return pooled_effect([value for value, _ in pairs], [error for _, error in pairs]) if len(pairs) > 1 else None


def _mean_row(row: Result, differences: Iterable[Result], *, bounded: bool) -> Result:
    """Return the row with the mean of several models' differences; without a value if `_pool` has none."""
    pooled = _pool(differences)
    if pooled is None:
        return row
    low, high = ends_of(pooled.interval)
    if bounded and low is not None and high is not None:
        # With two models the interval has one degree of freedom, and may exceed any possible difference of shares.
        low, high = max(-1.0, low), min(1.0, high)
    return replace(row, value=pooled.value, low=low, high=high, p=pooled.p_value)


def _why_no_claim(comparison: Comparison, pooled: Result, effects: Sequence[ToolEffect], mean: _Mean) -> str:
    """Return the reason why the pooled effect supports no claim; empty if it does."""
    rows_of_pairs = ConclusionRows(comparison, ("differences", "helped", "answered"))
    pairs = [rows_of_pairs.tested_pair(effect.a, effect.b) for effect in effects]
    over_models = _pair_over_models(pooled, effects, pairs, mean)
    if over_models.claim in NO_CLAIM:
        return f"{over_models.why_no_claim}{_parts_of(over_models)}"
    # Few models have wide intervals, which hide what withholds the claim about each of them.
    state = over_models.state
    claims = Counter(pair.claim for pair in pairs if pair.state == state) if state in ("more", "less") else Counter()
    if not claims or state in claims:
        return ""
    ((claim, _),) = claims.most_common(1)
    return f"{NO_CLAIM[claim]} in each model whose own difference is significant"


def _pair_over_models(
    pooled: Result, effects: Sequence[ToolEffect], pairs: Sequence[HeadlinePair], mean: _Mean
) -> HeadlinePair:
    """Return the pooled effect as the pair of one model, so that the same conditions decide whether it is claimed."""
    first = effects[0]
    other_rule = mean(_difference(effect, effect.by_rule(OTHER[effect.shared.rule])) for effect in effects)
    pair = HeadlinePair(first.a, first.b, rows=(pooled,), split=_split_over_models(pairs, mean))
    pair = replace(pair, other_rule=other_rule if hangs_on_rule(pair, other_rule) else None)
    if first.metrics[0].combine != "mean_of_ratios":
        return pair
    over_all = mean(_difference(effect, effect.over_all) for effect in effects)
    return replace(pair, over_all=over_all if is_uneven(pair, over_all) else None)


def _split_over_models(pairs: Sequence[HeadlinePair], mean: _Mean) -> AnswerSplit | None:
    """Return the means of the parts of the models' differences; None if every question was answered by all."""
    splits = [pair.split for pair in pairs if pair.split is not None]
    if not splits:
        return None
    # Without unanswered questions, the whole difference is one of better answers.
    whole = [pair.rows[0] for pair in pairs if pair.split is None and pair.rows]
    both = mean([*whole, *(split.both for split in splits if split.both is not None)])
    return AnswerSplit(
        mean(split.answering for split in splits),
        mean([*whole, *(split.better for split in splits)]),
        both=None if both.value is None else both,
        unanswered=(sum(split.unanswered[0] for split in splits), sum(split.unanswered[1] for split in splits)),
        more_answered=all(split.more_answered for split in splits),
    )


def _parts_of(pair: HeadlinePair) -> str:
    """Return the difference on the questions that both answered, if it is the reason why the pair has no claim."""
    if pair.claim in ("rule", "uneven") or pair.split is None or pair.split.both is None:
        return ""
    return f": on the questions that both answered {difference_of(pair.split.both)}"


def lead(_: Comparison, section_rows: Sequence[Result]) -> str:
    """State the pooled effects with their intervals, and why an effect is not claimed."""
    parts = []
    for row in section_rows:
        if row.quantity in EFFECTS and row.low is not None and row.high is not None:
            ends = f"[{100 * row.low:.0f}, {100 * row.high:.0f}]"
            why = f" (no claim: {row.no_claim})" if row.no_claim else ""
            parts.append(f"{row.quantity} {100 * (row.value or 0):+.0f} points {ends}{why}")
    return f"Over {section_rows[0].n} models: {', '.join(parts)}." if parts else ""


SECTION = statistic(rows, lead, order=2)
