"""The gain of a hybrid solver, split into the presence of tools and their content (the blank control).

    hybrid compare RUN RUN-WITH-BLANK-TOOLS

gain = hybrid - alone: the same MLLM with and without tools. It is the sum of two parts, on the same questions: presence
= blank - alone (the prompts, the texts of the tools, more turns) and content = hybrid - blank (what the tools say).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.compare import Comparison
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.result import FRACTION, Result, Section, adjusted, paired_contrast, with_contrast
from hybrid.scoring.score import Scored

NAME = "gain"
GAIN, PRESENCE, CONTENT, SHUFFLED = "gain", "presence", "content", "shuffled"


def rows(found: Comparison) -> list[Result]:
    """Each part of each hybrid solver that has a blank control, over all and by task."""
    made = [row for group in found.groups if group.blank is not None for row in _of_group(found, group)]
    return adjusted(made, lambda row: bool(row.group))


def _of_group(found: Comparison, group: ComparisonGroup) -> Iterator[Result]:
    """Gain, presence and content on the questions that all three have; content alone without the MLLM alone."""
    assert group.blank is not None  # noqa: S101 - the caller asks for groups that have one
    if group.alone is None:
        yield from _parts(found, (group.blank, group.hybrid), {CONTENT: (0, 1)})
    else:
        places = {GAIN: (0, 2), PRESENCE: (0, 1), CONTENT: (1, 2)}
        yield from _parts(found, (group.alone, group.blank, group.hybrid), places)
    if group.shuffled is not None:
        yield from _parts(found, (group.blank, group.shuffled), {SHUFFLED: (0, 1)})


def _parts(found: Comparison, solvers: Sequence[Scored], places: Mapping[str, tuple[int, int]]) -> Iterator[Result]:
    whole = found.overlap(*solvers)
    left_out = f"left out: {whole.left_out}" if whole.left_out else ""
    for group, shared in {"": whole, **whole.by_group(found.options.by)}.items():
        metrics = shared.accuracy(found.rule) if group else shared.headline(found.rule)
        if metrics is None:
            continue
        untested = shared.untested(metrics, allow_failed=found.options.allow_failed, whole=whole)
        for name, (a, b) in places.items():
            row = Result(
                NAME,
                name,
                FRACTION,
                None,
                solvers[a].solver,
                solvers[b].solver,
                metrics[a].name,
                group,
                metrics[a].n,
                none=found.rule,
                note="" if group else left_out,
            )
            yield with_contrast(row, paired_contrast(metrics[a], metrics[b], untested), untested)


def lead(found: Comparison, made: Sequence[Result]) -> str:
    """A sentence for each hybrid solver."""
    said = []
    for group in found.groups:
        if group.blank is not None:
            overall = [row for row in made if not row.group and row.b == group.hybrid.solver]
            said.append(_reading(group.hybrid.solver, _direction(overall, GAIN), _direction(overall, CONTENT)))
    return " ".join(filter(None, said))


def _reading(name: str, gain: int | None, content: int | None) -> str:
    if content is None:
        return ""
    by_content = {1: "what the tools say brings a gain", -1: "what the tools say brings a loss"}.get(content)
    if gain is None:
        return f"{name}: {by_content or 'what the tools say makes no difference that these questions can show'}."
    if gain > 0:
        where = "the gain comes from what the tools say"
        return f"{name}: {where}." if content > 0 else f"{name}: it is not shown that {where}."
    over = "no gain over the MLLM alone is shown" if gain == 0 else "with tools it is behind the MLLM alone"
    return f"{name}: {over}{f'; next to blank tools {by_content}' if by_content else ''}."


def _direction(rows_: Sequence[Result], quantity: str) -> int | None:
    """1 for a gain, -1 for a loss, 0 where neither is shown; None without a test."""
    row = next((row for row in rows_ if row.quantity == quantity and row.low is not None), None)
    return None if row is None else int((row.low or 0.0) > 0) - int((row.high or 0.0) < 0)


BOTH = "questions that all of these have and none failed"
SOURCE = "ours; docs/statistics.md; paired by question, resampled by cluster"

SECTION = Section(
    NAME,
    "Does the gain come from what the tools say?",
    (
        MetricCard(GAIN, "hybrid - alone", BOTH, SOURCE, "gain = presence + content.", "-1 to 1"),
        MetricCard(
            PRESENCE,
            "hybrid with blank tools - alone",
            BOTH,
            SOURCE,
            "What other prompts and more turns bring.",
            "-1 to 1",
        ),
        MetricCard(CONTENT, "hybrid - hybrid with blank tools", BOTH, SOURCE, "What the tools say.", "-1 to 1"),
        MetricCard(
            SHUFFLED,
            "hybrid with shuffled tools - hybrid with blank tools",
            BOTH,
            SOURCE,
            "What findings about other questions bring.",
            "-1 to 1",
        ),
    ),
    rows,
    lead,
    about=(
        "gain: the hybrid solver minus its MLLM alone. presence: with blank tools minus alone (prompts, texts of "
        "tools, more turns). content: with tools minus with blank tools (what they say). gain = presence + content. "
        "shuffled: with findings about other questions minus with blank tools. p is of the difference in the row, "
        "adjusted (Holm) over all parts of its table."
    ),
    chart="intervals",
    order=120,
)
