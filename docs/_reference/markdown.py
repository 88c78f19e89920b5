"""Writes texts of the code as Markdown: escaped, as tables, as blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from inspect import cleandoc

_SPECIAL = re.compile(r"[\\<>*_\[\]|#{}~^`]")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z](?:=[\w.-]*\w)?")
_COMMAND = re.compile(r"(?:hybrid|uv run|python -m) ")


@dataclass(frozen=True)
class Page:
    """A generated page: its path below docs/, its title in the navigation, and its Markdown."""

    path: str
    title: str
    text: str


def escaped(text: str) -> str:
    """Return the text escaped for Markdown; text between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts = [text]
    return "`".join(part if place % 2 else _plain(part) for place, part in enumerate(parts))


def _plain(text: str) -> str:
    """Return the text escaped; options in it become code."""
    found, end = [], 0
    for option in _OPTION.finditer(text):
        found += [_bare(text[end : option.start()]), f"`{option[0]}`"]
        end = option.end()
    return "".join([*found, _bare(text[end:])])


def _bare(text: str) -> str:
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", text.replace("&", "&amp;"))


def code(text: str) -> str:
    """Return the text as inline code, whatever it contains."""
    shown = _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", text.replace("&", "&amp;"))
    return f"<code>{shown}</code>"


def block(text: str, language: str = "text") -> str:
    """Return the text as a block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table of cells that already are Markdown; `right` holds the indices of columns of numbers."""
    lines = [heads, [("---:" if place in right else ":---") for place in range(len(heads))], *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.split()) for cell in line) + " |" for line in lines)


def definitions(entries: Iterable[tuple[str, Sequence[str]]]) -> str:
    """Return a list of definitions: a term, then paragraphs, which already are Markdown."""
    found = []
    for term, paragraphs in entries:
        body = "\n\n    ".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph)
        found.append(f"{term}\n:   {body or '&nbsp;'}")
    return "\n\n".join(found)


def prose(doc: str) -> str:
    """Convert a docstring or help text to Markdown: those paragraphs that click must not wrap stay verbatim."""
    return "\n\n".join(
        _paragraph(part) for part in re.split(r"\n\s*\n", cleandoc(doc).partition("\f")[0]) if part.strip()
    )


def _paragraph(text: str) -> str:
    verbatim, body = text.startswith("\b"), text.removeprefix("\b").strip("\n")
    if not verbatim:
        if text.startswith("    ") or _COMMAND.match(text):
            return block(_dedented(body), _language(body))
        return escaped(" ".join(body.split()))
    head, _, rest = body.partition("\n")
    if head.rstrip().endswith(":") and not head.startswith(" "):
        return f"{escaped(head)}\n\n{block(_dedented(rest), _language(rest))}"
    return block(_dedented(body), _language(body))


def _dedented(text: str) -> str:
    return cleandoc("\n" + text)


def _language(text: str) -> str:
    return "bash" if _COMMAND.match(text.lstrip()) else "text"
