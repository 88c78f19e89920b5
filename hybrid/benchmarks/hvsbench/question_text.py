"""Parse the text of an HVSBench question: options, boxes, scanpaths, search target and number of fixations.

    options("Which is more salient? [A] the dog [B] the car")    # ("the dog", "the car")

Everything is parsed once, when the data is loaded, and only from the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hybrid.core.errors import DataError
from hybrid.core.types import LETTERS, Box, Kind, PromptFacts, Scanpath

_NO_CHOICES: Final = {"Q2": Kind.INTEGER, "Q3": Kind.ORDER, "Q9": Kind.SCANPATH, "Q12": Kind.SCANPATH}
KINDS: Final[Mapping[str, Kind]] = {f"Q{n}": _NO_CHOICES.get(f"Q{n}", Kind.CHOICE) for n in range(1, 14)}

_LABELS: Final = (r"\[{letter}\]", r"\({letter}\)", r"<{letter}>", r"(?<![\w.]){letter}[.:)](?=\s|$)")
_LAST_OPTION_END: Final = re.compile(r"\n\s*\n|\s[—–]\s|(?<=\D)[.;?](?=\s)|(?<=[\])])[.;?](?=\s)|\n(?=[A-Z][a-z])")
_N: Final = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)"
_GAP: Final = r"\s*,\s*"
_BOX: Final = re.compile(rf"[\[(]\s*({_N}){_GAP}({_N}){_GAP}({_N}){_GAP}({_N})\s*[\])]")
_POINT: Final = re.compile(rf"[\[(]\s*({_N}){_GAP}({_N})(?:{_GAP}({_N}))?\s*[\])]")
_AXIS: Final = r"(?<![A-Za-z]){axis}[\"']?\s*[=:]\s*\[([^\[\]]*)\]"
_TARGET: Final = re.compile(
    r"\b(?:search(?:ing|es|ed)?|look(?:ing|s|ed)?)\s+for\s+(?:an?\s+|the\s+)?([a-z][a-z -]{0,80}?)\s*"
    r"(?:\bin\b|[,.;:?\n]|$)",
    re.IGNORECASE,
)
_FIXATIONS: Final = re.compile(r"\b(?:containing|contains?|of)\s+(\d{1,2})\s+values?\b|\blength\s+(\d{1,2})\b")


def options(text: str) -> tuple[str, ...]:
    """Return the options in order, each on one line without its label.

    Raises:
        DataError: fewer than two options after labels A, B, ..., or two equal options.
    """
    choices = tuple(" ".join(segment.split()).strip(" ,;:.—–") for segment in _segments(text, cut_last=True))
    if len(choices) < 2:
        raise DataError("no options after labels such as [A] and [B]")
    texts = [option for option in choices if option]
    if len(set(texts)) != len(texts):
        raise DataError(f"two options are the same: {', '.join(choices)!r:.120}")
    return choices


def prompt_facts(task: str, text: str, size: tuple[int, int], box_form: str) -> PromptFacts:
    """Return the facts of a question of type `task` (`Q1` to `Q13`) about an image of `size` (width, height).

    The returned boxes are in pixels. If all numbers of the boxes in the text are at most 1, they are read as fractions
    of the image's size. Scanpaths are the candidate paths of Q8 and Q11, or the candidate fixations of Q10 and Q13,
    each as a path of one point; `t_ms` is empty if the text gives no durations.

    Raises:
        DataError: a box without area, which usually means that boxes have the other form.
    """
    candidates: list[Scanpath] = []
    for segment in _segments(text, cut_last=False) if task in ("Q8", "Q10", "Q11", "Q13") else ():
        if task in ("Q8", "Q11") and (path_lists := lists(segment)):
            candidates.append(path_lists[0])
        # A candidate fixation is a path of one point.
        elif spots := points(segment)[: 1 if task in ("Q10", "Q13") else None]:
            x, y, times = zip(*spots, strict=True)
            candidates.append(Scanpath(x, y, () if None in times else times))
    target = _TARGET.search(text) if task in ("Q11", "Q12", "Q13") else None
    number = _FIXATIONS.search(text) if KINDS[task] is Kind.SCANPATH else None
    return PromptFacts(
        boxes=tuple(_boxes(text, size, box_form)) if task in ("Q1", "Q3", "Q4", "Q6") else (),
        scanpaths=tuple(candidates),
        target=target[1] if target else None,
        fixations=int(number[1] or number[2]) if number else None,
    )


def lists(text: str) -> tuple[Scanpath, ...]:
    """Return the scanpaths written as lists `X = [...] Y = [...] T = [...]`, in order; T may be missing everywhere.

    Raises:
        DataError: different numbers of X, Y and T lists, lists of different lengths in one path, or no numbers.
    """
    x, y, t = ([_numbers(m[1]) for m in re.finditer(_AXIS.format(axis=axis), text)] for axis in "XYT")
    if len(x) != len(y) or len(t) not in (0, len(x)):
        raise DataError(f"{len(x)} lists of X, {len(y)} of Y and {len(t)} of T do not form scanpaths")
    paths = [Scanpath(*lists) for lists in zip(x, y, t or [()] * len(x), strict=True)]
    for path in paths:
        if len(path.x) != len(path.y) or (t and len(path.t_ms) != len(path.x)):
            raise DataError(f"lists of {len(path.x)}, {len(path.y)} and {len(path.t_ms)} values are not a scanpath")
    return tuple(paths)


def points(text: str) -> tuple[tuple[float, float, float | None], ...]:
    """Return the points written as (x, y) or (x, y, duration), in order."""
    return tuple((float(m[1]), float(m[2]), float(m[3]) if m[3] else None) for m in _POINT.finditer(text))


def _segments(text: str, *, cut_last: bool) -> tuple[str, ...]:
    """Return the text after each label, for the labelling that finds most of A, B, C, ... in order."""
    best: list[tuple[int, int]] = []
    for form in _LABELS:
        spans: list[tuple[int, int]] = []
        place = 0
        for letter in LETTERS:
            match = re.compile(form.format(letter=letter)).search(text, place)
            if match is None:
                break
            spans.append(match.span())
            place = match.end()
        if len(spans) > len(best):
            best = spans
    if len(best) < 2:
        return ()
    starts = [end for _, end in best]
    stops = [start for start, _ in best[1:]]
    end = len(text)
    if cut_last and (match := _LAST_OPTION_END.search(text, starts[-1] + 1)):
        end = match.start()
    return tuple(text[start:stop] for start, stop in zip(starts, [*stops, end], strict=True))


def _boxes(text: str, size: tuple[int, int], form: str) -> Iterator[Box]:
    # A box may be given as two corners, or as a corner and the size. The paper does not say which, so this is a
    # setting.
    rows = [tuple(float(value) for value in match.groups()) for match in _BOX.finditer(text)]
    fractions = bool(rows) and all(value <= 1 for row in rows for value in row)
    width, height = size if fractions else (1, 1)
    for x0, y0, a, b in rows:
        x1, y1 = (x0 + a, y0 + b) if form == "xywh" else (a, b)
        if x1 <= x0 or y1 <= y0:
            other = "xyxy" if form == "xywh" else "xywh"
            raise DataError(f"the box {[x0, y0, a, b]} has no area as {form}; try the setting boxes={other}")
        yield Box(x0 * width, y0 * height, x1 * width, y1 * height)


def _numbers(inside: str) -> tuple[float, ...]:
    items = [item.strip() for item in inside.split(",") if item.strip()]
    try:
        return tuple(float(item) for item in items)
    except ValueError as error:
        raise DataError(f"the list [{inside:.60}] holds something that is not a number ({error})") from error
