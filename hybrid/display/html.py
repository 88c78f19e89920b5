"""Tables, texts and charts as HTML for notebooks: every text is escaped, and nothing runs or is loaded.

as_html(table)
interval_chart("accuracy", [Bar("mllm", 0.48, 0.41, 0.55)])
"""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hybrid.core.errors import DataError
from hybrid.core.images import ImageStore, home
from hybrid.core.secrets import redact
from hybrid.core.types import StoredImage
from hybrid.display.tables import Table

TEXT_STYLE = "white-space: pre-wrap; overflow-wrap: anywhere; margin: 0.2em 0"
# Sizes of a chart in pixels: height of a row, width of the labels, and width of the scale from 0 to 1.
ROW_PX, LABEL_PX, SCALE_PX = 22, 220, 320
# Maximum characters of a label, which would otherwise run into the scale.
LABEL_CHARACTERS = 34


@dataclass(frozen=True, slots=True)
class Bar:
    """A value between 0 and 1 with its interval, if one is known."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


def escaped(text: str) -> str:
    """Return the text without secrets and with the special characters of HTML escaped."""
    return html.escape(redact(text))


def paragraph(text: str) -> str:
    """Return a paragraph that keeps line breaks; empty for an empty text."""
    return f'<p style="{TEXT_STYLE}">{escaped(text)}</p>' if text else ""


def as_html(table: Table) -> str:
    """Return the table with its title as caption and its notes below."""
    sides = [f"text-align: {column.align}" for column in table.columns]
    head = _row("th", table.names, sides)
    rows = "".join(_row("td", row, sides) for row in table.rows)
    caption = f"<caption>{escaped(table.title)}</caption>" if table.title else ""
    body = f"<table>{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>"
    return body + "".join(map(paragraph, table.notes))


def _row(tag: str, cells: Sequence[str], sides: Sequence[str]) -> str:
    inside = (f'<{tag} style="{side}">{escaped(cell)}</{tag}>' for side, cell in zip(sides, cells, strict=True))
    return f"<tr>{''.join(inside)}</tr>"


def picture(data: bytes, media_type: str, name: str) -> str:
    """Return an image with its name; the bytes are in the page."""
    label = escaped(name)
    source = f"data:{escaped(media_type)};base64,{base64.b64encode(data).decode()}"
    image = f'<img src="{source}" alt="{label}" style="max-width: 100%">'
    return f'<figure style="margin: 0.5em 0">{image}<figcaption>{label}</figcaption></figure>'


def stored_picture(image: StoredImage, name: str) -> str:
    """Return an image of the store with its name; if the store no longer has it, return the reason."""
    try:
        data = ImageStore(home() / "images").read(image)
    except DataError as error:
        return paragraph(f"{name}: {error}")
    return picture(data, image.media_type, name)


def interval_chart(title: str, bars: Sequence[Bar]) -> str:
    """Return a chart of values between 0 and 1 with their intervals; empty if there is no finite value."""
    finite_bars = [bar for bar in bars if math.isfinite(bar.value)]
    if not finite_bars:
        return ""
    height = ROW_PX * (len(finite_bars) + 1)
    parts = [f'<text x="0" y="14" font-weight="bold">{escaped(title)}</text>']
    for number, bar in enumerate(finite_bars, 1):
        middle = ROW_PX * number + ROW_PX / 2
        label = bar.label if len(bar.label) <= LABEL_CHARACTERS else bar.label[: LABEL_CHARACTERS - 1] + "\u2026"
        parts.append(f'<text x="0" y="{middle + 4:.1f}">{escaped(label)}</text>')
        parts.append(_line(0.0, 1.0, middle, "#ddd", 1))
        if bar.low is not None and bar.high is not None:
            parts.append(_line(bar.low, bar.high, middle, "#4878a8", 3))
        parts.append(f'<circle cx="{_x(bar.value):.1f}" cy="{middle:.1f}" r="5" fill="#204a73"></circle>')
        parts.append(f'<text x="{LABEL_PX + SCALE_PX + 12}" y="{middle + 4:.1f}">{bar.value:.3f}</text>')
    width = LABEL_PX + SCALE_PX + 60
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg role="img" {size} font-size="12" font-family="sans-serif" fill="currentColor">{"".join(parts)}</svg>'


def joined(parts: Iterable[str]) -> str:
    """Return the parts in one `div` element."""
    return f"<div>{''.join(parts)}</div>"


def _x(value: float) -> float:
    return LABEL_PX + SCALE_PX * min(max(value, 0.0), 1.0)


def _line(low: float, high: float, y: float, colour: str, width: int) -> str:
    ends = f'x1="{_x(low):.1f}" x2="{_x(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"'
    return f'<line {ends} stroke="{colour}" stroke-width="{width}"></line>'
