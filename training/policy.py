"""The policy taught to the embedded model: the call for a question, and how tool outputs map to its choices.

    call_for(ask)                     the call, or None if no classical tool helps
    read(ask, finding's text)         the answer that the text supports, or None

Both depend only on what a model sees: the wording of the question determines the call and the reading of its finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from hybrid.core.messages import ToolCall
from hybrid.core.types import LETTERS, Json
from training.sight import View

FRACTION: Final = r"[01]\.\d\d"
ORDINALS: Final = ("first", "second", "third", "fourth", "fifth", "sixth")
HALF_X: Final = 0.04
# Half the sides of the box around a fixation, as fractions of the image: about one degree of visual angle.
HALF_Y: Final = 0.06


@dataclass(frozen=True)
class TaughtAsk:
    """The parts of a question on which a call depends: its text, its choices, and the names of its images."""

    text: str
    choices: tuple[str, ...]
    images: tuple[str, ...]


# Tasks for which no classical tool helps: the model first describes the picture, then answers.
VIEWS: Final[Mapping[tuple[str, str], View]] = {
    ("blink", "Counting"): "ground",
    ("blink", "Spatial_Relation"): "ground",
    ("mvp_bench", "yes_no"): "ground",
    ("mvp_bench", "cross"): "ground",
    ("mvp_bench", "single"): "ground",
    ("mm_sap", "BasicVisQA"): "ground",
    ("mm_sap", "BeyondVisQA"): "ground",
    ("mm_sap", "KnowVisQA"): "flag",
    ("hvsbench", "Q5"): "prominence",
    ("hvsbench", "Q6"): "prominence",
    ("hvsbench", "Q7"): "prominence",
}

# x0, y0, x1, y1 as fractions of the image.
Corners = tuple[float, float, float, float]
Call = Callable[[TaughtAsk], ToolCall]
Reading = Callable[[TaughtAsk, str], str | None]


@dataclass(frozen=True)
class Skill:
    """Questions whose text matches the pattern `asks`, the call that they need, and the reader of the tool's output."""

    asks: str
    call: Call
    reading: Reading


def call_for(ask: TaughtAsk) -> ToolCall | None:
    """Return the call that the question needs, with coordinates as fractions; None if it needs no call."""
    return next((skill.call(ask) for skill in SKILLS if re.search(skill.asks, ask.text)), None)


def read(ask: TaughtAsk, text: str) -> str | None:
    """Return the answer, in the form of the format line, that the text of a tool output supports, or None."""
    return next((skill.reading(ask, text) for skill in SKILLS if re.search(skill.asks, ask.text)), None)


def _tool(name: str, arguments: Mapping[str, Json]) -> ToolCall:
    return ToolCall("call_0_0", name, dict(arguments))


def on_all(name: str) -> Call:
    """Return a function that makes a call of a tool on all images of the prompt."""
    return lambda ask: _tool(name, {"images": list(ask.images)})


def on_marks(name: str) -> Call:
    """Return a function that makes a call of a tool on the first image, with the letters that the choices name."""

    def call(ask: TaughtAsk) -> ToolCall:
        points: list[Json] = [{"label": letter} for letter in _letters(ask.choices)]
        return _tool(name, {"image": ask.images[0], "points": points})

    return call


def localization(ask: TaughtAsk) -> ToolCall:
    """Call localization for the thing that the question names, within the drawn boxes."""
    match = re.search(r"encloses the ([a-z ]+?) more accurately", ask.text)
    name = match[1] if match else ""
    return _tool("localization", {"image": ask.images[0], "name": name, "labels": _letters(ask.choices)})


def saliency(spots: str = "") -> Call:
    """Return a function that makes a call of saliency, with boxes from the question's text.

    These are the boxes in the text or, with a pattern `spots`, boxes around the fixations that it finds there.

    Each box has the letter of its option.
    """

    def call(ask: TaughtAsk) -> ToolCall:
        boxes = [around(float(x), float(y)) for x, y in re.findall(spots, ask.text)] if spots else _boxes(ask.text)
        rows: list[Json] = [
            {"x0": x0, "y0": y0, "x1": x1, "y1": y1, "label": LETTERS[place]}
            for place, (x0, y0, x1, y1) in enumerate(boxes)
        ]
        return _tool("saliency", {"image": ask.images[0], "boxes": rows})

    return call


def scanpath(ask: TaughtAsk) -> ToolCall:
    """Call scanpath with the number of fixations and the target in the text."""
    number = re.search(r"each containing (\d+) values", ask.text)
    target = re.search(r"searching for a ([a-z ]+?) in this image", ask.text)
    arguments: dict[str, Json] = {"image": ask.images[0], "fixations": int(number[1]) if number else 6}
    return _tool("scanpath", {**arguments, **({"target": target[1]} if target else {})})


def _boxes(text: str) -> list[Corners]:
    boxes = re.findall(rf"\[({FRACTION}), ({FRACTION}), ({FRACTION}), ({FRACTION})\]", text)
    return [(float(a), float(b), float(c), float(d)) for a, b, c, d in boxes]


def around(x: float, y: float) -> Corners:
    """Return the box around a fixation, cut to the image."""
    low_x, low_y = max(0.0, round(x - HALF_X, 2)), max(0.0, round(y - HALF_Y, 2))
    return low_x, low_y, min(1.0, round(x + HALF_X, 2)), min(1.0, round(y + HALF_Y, 2))


def _letters(choices: tuple[str, ...]) -> list[Json]:
    """Return the letters that the choices name, "A" for "Point A"."""
    return [match[1] for choice in choices if (match := re.search(r"\b([A-Z])\b", choice))]


def choice_with(pattern: str) -> Reading:
    """Return a reader that finds a letter by the pattern and returns the choice with this letter."""

    def reading(ask: TaughtAsk, text: str) -> str | None:
        match = re.search(pattern, text)
        return _option(ask, rf"\b{match[1]}\b") if match else None

    return reading


def _option(ask: TaughtAsk, pattern: str) -> str | None:
    """Return the one choice that a pattern fits, as an answer."""
    fits = [place for place, choice in enumerate(ask.choices) if re.search(pattern, choice)]
    return f"Answer: ({LETTERS[fits[0]]})" if len(fits) == 1 else None


def later_image(ask: TaughtAsk, text: str) -> str | None:
    """Return the choice that names the image which continues the first; choices name images by word, not by number."""
    match = re.search(r"Image (\d) continues", text)
    if not match:
        return None
    name = f"{ORDINALS[int(match[1]) - 1]} image"
    answer = _option(ask, rf"\b{name}\b")
    return None if answer is None else f"The {name}.\n{answer}"


def darker(ask: TaughtAsk, text: str) -> str | None:
    """Return the choice for the darker surface, or for equal surfaces."""
    if "about equally dark" in text:
        return _option(ask, "same")
    match = re.search(r"surface at ([A-Z]) is darker", text)
    return _option(ask, rf"\b{match[1]}\b") if match else None


def first_of_boxes(ask: TaughtAsk, text: str) -> str | None:
    """Return the letter of the box that stands out most."""
    match = re.search(r"box ([A-H]) is the most salient", text)
    return f"Answer: ({match[1]})" if match and LETTERS.index(match[1]) < len(ask.choices) else None


def order_of_boxes(ask: TaughtAsk, text: str) -> str | None:
    """Return the letters of the boxes in their order."""
    line = re.search(r"^Order[^:]*: (.*)$", text, re.MULTILINE)
    letters = "".join(re.findall(r"\b([A-H]) [01]\.\d\d", line[1])) if line else ""
    return f"Answer: {letters}" if len(letters) == len(_boxes(ask.text)) else None


def count(ask: TaughtAsk, text: str) -> str | None:
    """Return how many objects stand out."""
    match = re.search(r"(\d+) salient objects?;", text)
    return f"Answer: {match[1]}" if match else None


def path(ask: TaughtAsk, text: str) -> str | None:
    """Return the three lists of a scanpath: x, y and duration."""
    lists = [re.search(rf"^{axis} [^=\n]*= (\[[^\]\n]*\])", text, re.MULTILINE) for axis in "XYT"]
    if not all(lists):
        return None
    return "\n".join(f"{axis} = {result[1]}" for axis, result in zip("XYT", lists, strict=True) if result)


SPOTS: Final = rf"\(({FRACTION}), ({FRACTION})\)"
# The second fixation of each scanpath: the first is always in the middle of the image.
SECOND_SPOTS: Final = rf"X = \[{FRACTION}, ({FRACTION})[^\]]*\] Y = \[{FRACTION}, ({FRACTION})"
# Lessons of the policy, by the wording of the generated questions.
SKILLS: Final = (
    Skill(r"corner of the first image is missing", on_all("jigsaw"), later_image),
    Skill(r"Did the camera move left or right", on_all("motion"), choice_with(r"camera moved to its (left|right)")),
    Skill(r"encloses the [a-z ]+ more accurately", localization, choice_with(r"([A-Z]) fits the ")),
    Skill(r"Which point is closer to the camera", on_marks("depth"), choice_with(r"Image 1: ([A-Z]) is nearest")),
    Skill(r"which point is darker", on_marks("reflectance"), darker),
    Skill(r"same point as REF", on_all("correspondence"), choice_with(r"([A-D]) of image 2 is the point")),
    Skill(r"box holds the more salient|holds the most salient object", saliency(), first_of_boxes),
    Skill(r"How many salient objects", lambda ask: _tool("saliency", {"image": ask.images[0]}), count),
    Skill(r"from the most to the least salient", saliency(), order_of_boxes),
    Skill(r"hold longest", saliency(SPOTS), first_of_boxes),
    Skill(r"Which scanpath fits a person", saliency(SECOND_SPOTS), first_of_boxes),
    Skill(r"Predict where a person", scanpath, path),
    # The quadrants of the last image, enlarged: the object in question is small, and only its pixels show the answer.
    Skill(
        r"(?s)(?:arrow point\?|disc directly at the right of).*Options: ",
        lambda ask: _tool("crop", {"image": ask.images[-1]}),
        lambda ask, text: None,
    ),
)
