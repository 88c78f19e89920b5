"""Tool output in other words: the same numbers and names in the tool's second fixed wording.

    paraphrased(finding, tool.wording, given)      # `--tool-output paraphrased`

A run that differs only in the wording shows whether a gain depends on a tool's wording or on its content. A phrase
never contains a digit, and texts from the call and the data (names, labels, read texts) are not changed, so both
wordings contain the same numbers and names. Data and pictures stay the same, so rules see no difference. An output
stays unchanged if its text contains no phrase, or if its data repeat the full sentence. Its version then begins with
`UNCHANGED`, and a conclusion about wording states how many outputs are unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hybrid.core.coordinates import Place
from hybrid.core.types import Finding

Wording = Sequence[tuple[str, str]]
# Prefix of the version of an output whose text did not change.
UNCHANGED: Final = "unchanged:"


def paraphrased(finding: Finding, wording: Wording, arguments: Mapping[str, Any]) -> Finding:
    """Return the output with its text in the second wording; the marks of coordinates move with their numbers.

    Args:
        finding: the output.
        wording: phrases and their replacements; if several phrases begin at the same place, the first one counts.
        arguments: arguments of the call, whose texts are not changed.
    """
    if not wording:
        return _marked(finding)
    protected = sorted({*_texts(arguments), *_texts(finding.data)}, key=len, reverse=True)
    other = dict(reversed(list(wording)))
    text, position, moved = "", 0, []
    places = iter(sorted(finding.places, key=lambda place: place.start))
    place = next(places, None)
    for match in _pattern(protected, tuple(phrase for phrase, _ in wording)).finditer(finding.text):
        if match["phrase"] is None:
            continue
        while place is not None and place.end <= match.start():
            moved.append(_shifted(place, len(text) - position))
            place = next(places, None)
        if place is not None and place.start < match.end():
            continue
        text += finding.text[position : match.start()] + other[match["phrase"]]
        position = match.end()
    while place is not None:
        moved.append(_shifted(place, len(text) - position))
        place = next(places, None)
    text += finding.text[position:]
    return _marked(finding) if text == finding.text else replace(finding, text=text, places=tuple(moved))


def _marked(finding: Finding) -> Finding:
    """Mark an output that stays unchanged; an output without text is not marked."""
    return replace(finding, version=f"{UNCHANGED}{finding.version}") if finding.text.strip() else finding


def _shifted(place: Place, by: int) -> Place:
    return replace(place, start=place.start + by, end=place.end + by)


def _pattern(protected: Sequence[str], phrases: Sequence[str]) -> re.Pattern[str]:
    """Build a pattern that matches a protected text or, if there is none at this position, a phrase.

    Each match must begin and end at a word boundary.
    """
    names = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in protected) or r"(?!)"
    alternatives = "|".join(
        rf"{_edge(phrase[0], '(?<!')}{re.escape(phrase)}{_edge(phrase[-1], '(?!')}" for phrase in phrases
    )
    return re.compile(rf"(?P<kept>{names})|(?P<phrase>{alternatives})")


def _edge(character: str, look: str) -> str:
    return rf"{look}\w)" if character.isalnum() else ""


def _texts(node: Any) -> Iterator[str]:
    """Yield the texts in arguments or data that a tool may repeat, except single characters, which are labels."""
    if isinstance(node, str):
        if len(node) > 1:
            yield node
    elif isinstance(node, Mapping):
        for value in node.values():
            yield from _texts(value)
    elif isinstance(node, list | tuple):
        for item in node:
            yield from _texts(item)
