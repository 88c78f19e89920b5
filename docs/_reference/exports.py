"""The page of what `hybrid export` writes."""

from __future__ import annotations

from _reference.markdown import Page, code, escaped, table
from hybrid.exporting.base import Exporter
from hybrid.plugins.registry import load, names
from hybrid.scoring.records import PARQUET, TABLE


def pages() -> tuple[Page, ...]:
    """The one page."""
    exporters: dict[str, Exporter] = {name: load("hybrid.exporting", name) for name in names("hybrid.exporting")}
    formats = table(
        ("`--to`", "what is written"), [(code(name), escaped(one.about)) for name, one in exporters.items()]
    )
    columns = table(
        ("column", "type", "holds"), [(code(one.name), escaped(one.type), escaped(one.about)) for one in PARQUET]
    )
    of_table = table(
        ("column", "type", "holds"), [(code(one.name), escaped(one.type), escaped(one.about)) for one in TABLE]
    )
    text = f"""# Exports

These are the formats of [`hybrid export`](commands/export.md). [Exchange results](../exchange.md) says what each format
contains and omits, and which formats can be read back.

{formats}

## Columns of parquet

{columns}

## Columns of a table of questions

`hybrid.table` and `--to table` have these columns.

{of_table}
"""
    return (Page("reference/exports.md", "Exports", text),)
