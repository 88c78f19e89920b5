"""A statistic's definition, read from its module's docstring: the one source for tables, csv, JSON, pages and docs.

The first paragraph is the title. Paragraphs between the title and `n:` are printed below tables, one per line. `n:`,
`source:` and `values:` are defaults for quantities without their own; then each quantity has an item,
`- NAME (VALUES) = FORMULA. REMARK [n: N; source: SOURCE]`. Text below the items appears only in the docs.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from typing import Any

from hybrid.benchmarks.card import MetricCard
from hybrid.scoring.result import Lead, Rows, Section, no_lead

_DEFAULT = re.compile(r"^(n|source|values): ", re.MULTILINE)
_ITEM = re.compile(
    r"(?P<name>.+?)(?: \((?P<values>[^()]*)\))? = (?P<formula>.*?)(?:\. (?P<about>.*?))?(?: \[(?P<own>.*)\])?"
)
_OWN = re.compile(r"(?:n: (?P<n>.*?))?(?:(?:; |^)source: (?P<source>.*))?")


@dataclass(frozen=True)
class Definition:
    """The definition of a statistic, read from a docstring."""

    title: str
    about: str
    quantities: tuple[MetricCard, ...]
    # Paragraphs that appear only in the docs.
    notes: str


def definition(text: str | None) -> Definition:
    """Parse a docstring. Raises `ValueError`, quoting the paragraph that is not an item."""
    title, *blocks = re.split(r"\n\n+", (text or "").strip())
    places = [place for place, block in enumerate(blocks) if _DEFAULT.match(block)]
    if len(places) != 1 or len(blocks) < places[0] + 2:
        raise ValueError(
            f"the definition {title!r} needs one paragraph that begins with n: or source:, and items below"
        )
    (at,) = places
    _, *parts = _DEFAULT.split(blocks[at])
    usual = {"values": "0 to 1"} | {key: _joined(text) for key, text in zip(parts[::2], parts[1::2], strict=True)}
    items = re.split(r"^- ", blocks[at + 1], flags=re.MULTILINE)[1:]
    cards = []
    for item in map(_joined, items):
        match = _ITEM.fullmatch(item)
        inner = _OWN.fullmatch(match["own"] or "") if match else None
        if match is None or inner is None:
            raise ValueError(f"no item NAME (VALUES) = FORMULA. REMARK [n: N; source: SOURCE]: {item!r}")
        counts, source = inner["n"] or usual["n"], inner["source"] or usual["source"]
        values = match["values"] or usual["values"]
        cards.append(
            MetricCard(
                match["name"], match["formula"], counts=counts, source=source, about=match["about"] or "", values=values
            )
        )
    about, notes = "\n".join(map(_joined, blocks[:at])), "\n\n".join(blocks[at + 2 :])
    return Definition(_joined(title), about, tuple(cards), notes)


def _joined(block: str) -> str:
    return " ".join(block.split())


def statistic(rows: Rows, lead: Lead = no_lead, *, about: str = "", **facts: Any) -> Section:
    """Return the section of the module that defines `rows`; `about` replaces the docstring's description."""
    module = sys.modules[rows.__module__]
    defined = definition(module.__doc__)
    name = rows.__module__.rpartition(".")[2]
    return Section(
        name, defined.title, quantities=defined.quantities, rows=rows, lead=lead, about=about or defined.about, **facts
    )


def notes_of(section: Section) -> str:
    """Return the paragraphs below the quantities in the docstring of a statistic; empty without a definition."""
    try:
        return definition(sys.modules[section.rows.__module__].__doc__).notes
    except ValueError:
        return ""
