"""Parse replies of ActiView's dialogues: image parts to zoom into, whether to continue, and parts to keep.

Every reply can be read strictly (`parse_*`, the intended meaning) and like the released code (`official_*`,
THUNLP-MT/ActiView, toolkit/evaluator.py), so that both protocols can be run and recomputed. Parts are numbered from 1;
with four, 1 is upper left, 2 lower left, 3 upper right, 4 lower right.
"""

import json
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from hybrid.answers.base import CUE, Parsed, answer_part, bare, first_match, normalise, undecided

Views = frozenset[int]

_PART: Final = r"(?:parts?|views?|tiles?|regions?|quadrants?|sections?|numbers?|images?|areas?)"
_GAP: Final = rf"(?:\s?(?:,|;|、|&|/|\band\b)){{1,2}}\s?(?:{_PART}\s)?"
_NUMBERS: Final = rf"[0-9]{{1,3}}(?![0-9]|\.[0-9])(?:{_GAP}[0-9]{{1,3}}(?![0-9]|\.[0-9]))*"
_WHOLE: Final = re.compile(rf"(?i)\W{{0,3}}(?:{_PART}\W{{1,3}})?({_NUMBERS})[\W_]{{0,3}}")
_SPACED: Final = re.compile(r"[0-9]{1,3}(?:\s[0-9]{1,3})+\W{0,3}")
_NAMED: Final = re.compile(rf"(?i)\b(?:{_PART}|select(?:ed)?|need)\b[\s:=(\[\"']{{0,4}}({_NUMBERS})")
_ANNOUNCED: Final = re.compile(rf"(?i)(?:{CUE})[\s:=(\[\"']{{0,6}}(?:{_PART}\s)?({_NUMBERS})")
_NOT_NEEDED: Final = re.compile(r"(?i)\b(?:not|n't|no need|irrelevant|unnecessary|without|but|except)\b|n't\b")
_CORNER: Final = re.compile(r"(?i)\b(upper|top|lower|bottom)[-\s]?(left|right)\b")
_HALF: Final = re.compile(r"(?i)\b(upper|top|lower|bottom|left|right)\s(?:half|side|parts|views)\b")
_ALL: Final = re.compile(rf"(?i)\ball(?:\s(?:of\s)?(?:the\s)?(?:four|4))?\s(?:the\s)?{_PART}\b")
_ROWS: Final = {"upper": {1, 3}, "top": {1, 3}, "lower": {2, 4}, "bottom": {2, 4}}
_SIDES: Final = {"left": {1, 2}, "right": {3, 4}}


@dataclass(frozen=True)
class ViewsReply:
    """A normalised reply and the number of image parts."""

    text: str
    n: int

    def keep(self, numbers: Collection[int]) -> Views | None:
        """Return the `numbers` that are parts; None if there are none."""
        return frozenset(v for v in numbers if 1 <= v <= self.n) or None


def _numbers(text: str) -> list[int]:
    return [int(m) for m in re.findall(r"[0-9]{1,3}", text)]


def only_numbers(reply: ViewsReply) -> Views | None:
    """Read a reply that is only part numbers: `1, 2`, `3.`, `parts 2 and 3`, `[1, 4]`."""
    match = _WHOLE.fullmatch(reply.text) or _SPACED.fullmatch(reply.text)
    return reply.keep(_numbers(match[0])) if match else None


def announced(reply: ViewsReply) -> Views | None:
    """Read the numbers that are last announced as the answer: `Answer: 1, 3`."""
    texts = _ANNOUNCED.findall(reply.text)
    return reply.keep(_numbers(texts[-1])) if texts else None


def _needed(reply: ViewsReply) -> str:
    """Remove the clauses about parts that are not needed."""
    clauses = re.split(r"(?<=[.;!\n])\s?|,\s(?=but|while|whereas|not)|\s(?=and not\b)", reply.text)
    return "\n".join(clause for clause in clauses if not _NOT_NEEDED.search(clause))


def named_numbers(reply: ViewsReply) -> Views | None:
    """Read numbers after a word for parts: `I need parts 2 and 3`."""
    texts = _NAMED.findall(_needed(reply))
    return reply.keep([v for numbers in texts for v in _numbers(numbers)])


def all_parts(reply: ViewsReply) -> Views | None:
    """Read `all`, `all four parts`."""
    return reply.keep(range(1, reply.n + 1)) if bare(reply.text) == "all" or _ALL.search(_needed(reply)) else None


def positions(reply: ViewsReply) -> Views | None:
    """Read words for the positions of four parts: `upper left`, `the bottom-right corner`, `the left half`."""
    if reply.n != 4:
        return None
    text = _needed(reply).casefold()
    corners = [_ROWS[row] & _SIDES[side] for row, side in _CORNER.findall(text)]
    halves = [(_ROWS | _SIDES)[word] for word in _HALF.findall(text)]
    return reply.keep({v for part in corners + halves for v in part})


RULES: Final = (only_numbers, announced, named_numbers, all_parts, positions)


_RUN: Final = re.compile(r"(?<![0-9.])([0-9]{1,2})\s?(?:to|through|[-–])\s?([0-9]{1,2})(?![0-9.])")


def parse_views(text: str, n: int = 4) -> Parsed[Views]:
    """Read the parts (numbers 1 to n) that any text asks for; None if there are none. Other numbers are ignored."""
    # Write `1 to 3` as `1, 2, 3`.
    plain = _RUN.sub(lambda run: ", ".join(map(str, range(int(run[1]), int(run[2]) + 1))) or run[0], answer_part(text))
    reply = ViewsReply(plain, n)
    return first_match(RULES, reply) if reply.text else undecided()


_OFFICIAL_WORDS: Final = re.compile(r"upperleft|lowerleft|upperright|lowerright|left|right|upper|lower")
# The released table contains "upper" twice, [1, 3] and then [2, 4], so the second value applies and "lower" is missing.
_OFFICIAL_VIEWS: Final[dict[str, tuple[int, ...]]] = {
    "left": (1, 2),
    "right": (3, 4),
    "upper": (2, 4),
    "upperleft": (1,),
    "lowerleft": (2,),
    "upperright": (3,),
    "lowerright": (4,),
}


def official_views(text: str) -> Parsed[Views]:
    """Read the parts in `text` like the released code (`format_data4zooming_qa`).

    Full stops count as commas; a piece counts only if its very first character is a digit, so "1, 2" gives {1}. There
    is no range check. An empty set means only the full image. The result is None if the released code stops with an
    error, as it does for a piece such as "1 and 3", and for the word "lower".
    """
    views: set[int] = set()
    for piece in text.replace(".", ",").split(","):
        word = _OFFICIAL_WORDS.match(piece)
        try:
            if re.match(r"\d", piece):
                views.add(int(piece))
            elif word:
                views.update(_OFFICIAL_VIEWS[word[0]])
        except (ValueError, KeyError):
            return undecided()
    return Parsed(frozenset(views), "official")


def official_continue(text: str) -> bool:
    """Return whether the released code continues: it stops only at exactly "no" in any case ("No." continues)."""
    return text.lower() != "no"


@dataclass(frozen=True)
class ViewPlan:
    """A step of the mixed dialogue. A field that the reply lacks is None; the word "none" gives the empty set.

    `part` are the parts to zoom into (first step), `keep` the zoomed parts to keep and `shift` the other parts to
    look at (second step), all numbers 1 to n. Raises `ValueError` unless at least one field is given.
    """

    part: Views | None
    keep: Views | None
    shift: Views | None

    def __post_init__(self) -> None:
        if self.part is None and self.keep is None and self.shift is None:
            raise ValueError("a view plan needs at least one of part, keep and shift")


def _field(value: object, n: int) -> Views | None:
    """Return the parts that a JSON value names, such as "1, 3", 2 or [1, "3"]; the empty set for "none", "" or null.

    The result is None for any other value, and for a number that is not a part (1 to n).
    """
    items: list[object] = value if isinstance(value, list) else [value]
    parts: set[int] = set()
    for item in items:
        text = "none" if item is None else str(item).strip().casefold() if isinstance(item, str | int) else "?"
        if text in ("none", ""):
            continue
        match = None if isinstance(item, bool) else _WHOLE.fullmatch(text) or _SPACED.fullmatch(text)
        numbers = _numbers(match[0]) if match else [0]
        if not all(1 <= v <= n for v in numbers):
            return None
        parts.update(numbers)
    return frozenset(parts)


def parse_view_plan(text: str, n: int = 4) -> Parsed[ViewPlan]:
    """Read the plan from the JSON object in any text; None if there is no object, or if a field is malformed."""
    clean = normalise(text)
    # Code fences and text around the object are removed.
    start, end = clean.find("{"), clean.rfind("}")
    document: Any = None
    with suppress(ValueError, RecursionError):
        document = json.loads(clean[start : end + 1]) if 0 <= start <= end else None
    fields = document if isinstance(document, dict) else {}
    values = {name: _field(fields[name], n) for name in ("part", "keep", "shift") if name in fields}
    if not values or None in values.values():
        return undecided()
    return Parsed(ViewPlan(values.get("part"), values.get("keep"), values.get("shift")), "json")


def _official_list(field: object) -> list[int]:
    """Read `"1,2"` as [1, 2] like the released code; raises `TypeError` or `ValueError` if it fails."""
    if not isinstance(field, str):
        raise TypeError(f"not a text: {field!r}")
    return [int(piece) for piece in field.split(",")]


def official_part(text: str) -> tuple[int, ...]:
    """Return the parts, 1 to 4, that the released code zooms into, in the reply's order; empty if it is unreadable.

    The released code calls `json.loads` on the whole reply, so a code fence fails. `part` must be numbers with commas,
    or "none".
    """
    try:
        value = json.loads(text)
        numbers = _official_list(value["part"]) if isinstance(value, dict) and value.get("part") != "none" else []
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
    return tuple(v for v in numbers if 0 < v < 5)


def official_keep_shift(text: str, current: Collection[int]) -> tuple[int, ...] | None:
    """Return the parts, 1 to 4, that the released code shows after the second step; None if it keeps `current`.

    Numbers in `keep` count only if they are in `current`, numbers in `shift` only if they are not; "none" is the empty
    list. After any failure the released code keeps `current`.
    """
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            return None
        keep_text, shifted = value["keep"], value["shift"]
        keep = [] if keep_text == "none" else [v for v in _official_list(keep_text) if v in current and 0 < v < 5]
        shift = [] if shifted == "none" else [v for v in _official_list(shifted) if v not in current and 0 < v < 5]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return tuple(keep or shift) if not (keep and shift) else tuple(sorted({*keep, *shift}))
