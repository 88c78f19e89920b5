"""The three effects that a study of tools measures, each a difference of two solvers over its own questions.

    for effect in tool_effects(comparison, group):
        effect.quantity, effect.a, effect.b, effect.metrics      # "gain", alone, hybrid, (Metric, Metric)

gain: with tools minus alone. effect of offering: blank tools minus alone. effect of output: with tools minus blank
tools. The last two share the questions of all three solvers, so that they add up to the gain there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from hybrid.benchmarks.base import UnansweredRule
from hybrid.core.types import Metric
from hybrid.scoring.compare import Comparison
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.overlap import Overlap
from hybrid.scoring.result import FRACTION, UNTESTED, Result, unit_of
from hybrid.scoring.score import Scored

GAIN: Final = "gain"
OFFERING: Final = "effect of offering"
OUTPUT: Final = "effect of output"
EFFECTS: Final = (GAIN, OFFERING, OUTPUT)


@dataclass(frozen=True)
class ToolEffect:
    """The difference b minus a of the headline metric over the `shared` questions."""

    quantity: str
    a: Scored
    b: Scored
    shared: Overlap
    # The positions of a and b among the solvers of `shared`.
    places: tuple[int, int]
    metrics: tuple[Metric, Metric]

    def by_rule(self, rule: UnansweredRule) -> tuple[Metric, Metric]:
        """Return the metrics of a and b if a question without an answer counts by this rule."""
        metrics = self.shared.headline(rule)
        if metrics is None:
            return self.metrics
        return metrics[self.places[0]], metrics[self.places[1]]

    @property
    def why_untested(self) -> str:
        """Return why nothing is tested; empty if something is."""
        reason = self.shared.untested(self.metrics)
        return "" if reason is None else UNTESTED[reason]

    @property
    def is_share(self) -> bool:
        """Whether the metric is a share, whose differences are points."""
        return unit_of(self.metrics) == FRACTION

    def row(self, section: str, quantity: str = "") -> Result:
        """Return an empty row of this effect."""
        metric, unit = self.metrics[0], unit_of(self.metrics)
        row = Result(section, quantity or self.quantity, unit, None, self.a.solver, self.b.solver, metric.name)
        return replace(row, n=metric.n, none=self.shared.rule)


def tool_effects(comparison: Comparison, group: ComparisonGroup) -> Iterator[ToolEffect]:
    """Yield the effects that the group's solvers allow, if both sides have the headline metric."""
    alone, blank, hybrid = group.alone, group.blank, group.hybrid
    if alone is not None:
        yield from _effects(comparison, (alone, hybrid), {GAIN: (0, 1)})
    if alone is not None and blank is not None:
        yield from _effects(comparison, (alone, blank, hybrid), {OFFERING: (0, 1), OUTPUT: (1, 2)})
    elif blank is not None:
        yield from _effects(comparison, (blank, hybrid), {OUTPUT: (0, 1)})


def _effects(
    comparison: Comparison, solvers: tuple[Scored, ...], of: dict[str, tuple[int, int]]
) -> Iterator[ToolEffect]:
    shared = comparison.overlap(*solvers)
    metrics = shared.headline(comparison.rule)
    if metrics is None or not shared.n:
        return
    for quantity, (a, b) in of.items():
        yield ToolEffect(quantity, solvers[a], solvers[b], shared, (a, b), (metrics[a], metrics[b]))
