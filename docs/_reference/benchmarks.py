"""A page for each benchmark, from its card and the numbers that its paper printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from _reference.markdown import Page, block, code, escaped, table
from hybrid.benchmarks.card import BenchmarkCard, Setting
from hybrid.cli._run_config import common_settings
from hybrid.core.option_rotation import ALL_TASKS
from hybrid.plugins.registry import load, names
from hybrid.scoring.published import published
from hybrid.scoring.published_tables import published_tables

FOLDER = "reference/benchmarks"


def pages() -> tuple[Page, ...]:
    """Return the overview, then a page for each benchmark, by name."""
    cards: list[BenchmarkCard] = [load("hybrid.benchmarks", name).card for name in names("hybrid.benchmarks")]
    return (_overview(cards), *(_page(card) for card in cards))


def _overview(cards: Sequence[BenchmarkCard]) -> Page:
    rows = [
        (
            f"[{code(card.name)}]({card.name}.md)",
            f"{sum(card.tasks.values()):,}" if card.tasks else "",
            str(len(card.tasks) or ""),
            escaped(card.title),
        )
        for card in cards
    ]
    settings = _settings(common_settings())
    text = f"""# Benchmarks

The cards of the benchmarks, with the numbers that their papers printed. `hybrid benchmarks show NAME` prints the same.
[Metrics](../metrics.md) says how each number is computed.

{table(("benchmark", "questions", "tasks", "title"), rows, right=(1, 2))}

## Settings of every benchmark

These settings say how a model is asked, with `--setting KEY=VALUE`.

{settings}
"""
    return Page(f"{FOLDER}/index.md", "Benchmarks", text)


def _page(card: BenchmarkCard) -> Page:
    return Page(f"{FOLDER}/{card.name}.md", card.short_title, "\n\n".join(_sections(card)) + "\n")


def _sections(card: BenchmarkCard) -> Iterator[str]:
    yield f"# {escaped(card.title)}"
    splits = ", ".join(f"{one} (answers hidden)" if one in card.hidden_splits else one for one in card.splits)
    facts = [
        ("name on the command line", code(card.name)),
        ("citation", escaped(card.citation)),
        ("licence", escaped(card.licence)),
        ("on the hub", code(card.hub_id) if card.hub_id else "no"),
        *([("elsewhere", escaped(card.elsewhere))] if card.elsewhere else []),
        *((f"labels of {one.task} corrected on {one.on}", escaped(one.said)) for one in card.corrections),
        *([("not checked against the data", escaped(card.unchecked))] if card.unchecked else []),
        ("splits", splits),
        ("leads with", ", ".join(code(name) for name in card.headline)),
        ("how it is computed", f"[metrics](../metrics.md#{anchor(card)})"),
        (
            "tools offered by default",
            ", ".join(f"[{code(name)}](../tools/{name}.md)" for name in card.tools_offered) or "all",
        ),
    ]
    yield table(("", ""), facts)
    yield "## Tasks"
    rows = [
        (
            escaped(task),
            str(count or "unknown"),
            "yes" if {task, ALL_TASKS} & {*card.rotatable} else "no",
            "yes" if task in card.sample_tasks else "no",
        )
        for task, count in card.tasks.items()
    ]
    if rows:
        yield table(("task", "questions", "options rotate", "generated"), rows, right=(1,))
    else:
        yield "The tasks named in the data."
    yield (
        "The number of questions is that of the main split. `--rotate` moves options that are text; `--data sample` "
        "generates questions, which are for tests and never a benchmark result."
    )
    if card.settings:
        yield "## Settings"
        yield _settings(card.settings)
    if card.baselines:
        yield "## Baselines of the paper, each with the command that asks the same questions here"
        yield from _baselines(card)
    yield "## Images"
    yield table(
        ("from", "said in", "tasks"),
        [(escaped(one.name), escaped(one.where), escaped(", ".join(one.tasks) or "all")) for one in card.image_sources],
    )
    yield from _published(card)


def anchor(card: BenchmarkCard) -> str:
    """Return the title of the benchmark's section on the page of metrics."""
    return re.sub(r"[^a-z0-9]+", "-", card.short_title.lower()).strip("-")


def _settings(settings: Sequence[Setting]) -> str:
    rows = [
        (
            code(one.name),
            code(one.default) if one.default else "none",
            " or ".join(map(code, one.values)),
            escaped(one.help),
        )
        for one in settings
    ]
    return table(("setting", "default", "values", "what it is"), rows)


def _baselines(card: BenchmarkCard) -> Iterator[str]:
    for one in card.baselines:
        differs = f" Other than there: {escaped(one.differs)}." if one.differs else ""
        yield f"**{escaped(one.name)}** ({escaped(one.where)}).{differs}\n\n{block(one.command, 'bash')}"


def _published(card: BenchmarkCard) -> Iterator[str]:
    tables = published_tables(published(card.name))
    if not tables:
        return
    yield "## Published numbers"
    yield "As printed, in the unit of the table; a number in brackets links to the limits of a comparison."
    for one in tables:
        yield f"### {escaped(one.title.removeprefix('published, '))}"
        rows = [tuple(escaped(cell) for cell in row) for row in one.rows]
        heads = [escaped(column.name) for column in one.columns]
        yield table(heads, rows, right=range(1, len(heads)))
        if one.notes:
            yield "\n".join(f"- {escaped(note)}" for note in one.notes)
