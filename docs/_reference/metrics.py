"""One page of formulas: the benchmarks' own metrics, those of every benchmark, and the quantities of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from _reference.benchmarks import anchor
from _reference.markdown import Page, code, definitions, escaped
from hybrid.benchmarks.card import BenchmarkCard, MetricCard
from hybrid.plugins.registry import load, names
from hybrid.scoring.definitions import notes_of
from hybrid.scoring.metric_cards import FURTHER
from hybrid.scoring.sections import sections

OPENING = """# Metrics

This page defines every number that `hybrid score` and `hybrid compare` print: its formula, what `n` counts, and the
source of the definition.
`<a|b>` in a name stands for one of these words, `<word>` for any word of the data.

A question without a readable answer is wrong, as in the papers (`--unanswered wrong`), or scores what a uniform guess
scores on average (`--unanswered guess`). Each output follows one of these two rules and names it at the top. A failed
question is missing from every number and is counted separately. If several
answers of MVP-Bench form one unit (a pair of pictures, the rotations of a question), the score of the unit is the
product of the scores of its answers. [Statistics](../statistics.md) explains intervals and tests."""


def pages() -> tuple[Page, ...]:
    """The one page."""
    return (Page("reference/metrics.md", "Metrics", "\n\n".join(_sections()) + "\n"),)


def _sections() -> Iterator[str]:
    yield OPENING
    for name in names("hybrid.benchmarks"):
        card: BenchmarkCard = load("hybrid.benchmarks", name).card
        yield f"## {escaped(card.short_title)} {{ #{anchor(card)} }}"
        yield f"{escaped(card.citation)}; [its card](benchmarks/{name}.md)."
        yield _listed(card.metrics)
    yield "## Of every benchmark"
    yield _listed(FURTHER)
    yield "## Of a comparison"
    yield (
        "These are the lines of `hybrid compare --csv`, by their column `section`; `a` and `b` are the solvers. "
        "[Use of evidence](../evidence.md) explains the classes, [Statistics](../statistics.md) the tests."
    )
    for section in sections():
        yield f"### {code(section.name)}: {escaped(section.title)} {{ #compare-{section.name.replace('_', '-')} }}"
        if section.about:
            yield escaped(section.about)
        yield _listed(section.quantities)
        if notes := notes_of(section):
            yield notes


def _listed(cards: Iterable[MetricCard]) -> str:
    return definitions((code(card.name), tuple(_about(card))) for card in cards)


def _about(card: MetricCard) -> Iterator[str]:
    yield f'<span class="formula">{escaped(card.formula)}</span>'
    yield escaped(card.about)
    yield f"*Values: {escaped(card.values)}. n: {escaped(card.counts)}. Source: {escaped(card.source)}.*"
