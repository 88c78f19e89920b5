"""Simulated worlds with known truth for the sections that answer a reviewer: `python -m bench.sentences --worlds`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._runs import write_run
from bench._sentence_worlds import Right, World, questions
from hybrid.core.types import (
    AnnotatedPlace,
    Attempt,
    Box,
    Exchange,
    ImageRef,
    Json,
    Prompt,
    Question,
    Reply,
    Step,
    Usage,
)
from hybrid.log.folder import RunFolder
from hybrid.scoring.compare import Comparison, compare
from hybrid.scoring.conclusion import conclusion
from hybrid.scoring.reports import compare_paths

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class DrawnSolver:
    """Answers of one solver: whether each is right, whether a tool was called, and the result of the call.

    `right_output` says whether the tool output leads to the right answer, `confidence` is the tool's own, and `tokens`
    is the size of the reply. Without `has_call`, no tool was called. With `boxes`, each called question has calls of
    the crop tool with these boxes.
    """

    right: Right
    has_call: Right | None = None
    right_output: Right | None = None
    confidence: Floats | None = None
    tokens: Floats | None = None
    boxes: Sequence[Sequence[Box]] | None = None
    # Version of the tool output of each question; "drawn" without a tool.
    versions: Sequence[str] = ()

    def reply(self, question: Question, place: int) -> Reply:
        """Return the reply to the question at this index."""
        tokens = 0 if self.tokens is None else int(self.tokens[place])
        is_called = self.has_call is not None and bool(self.has_call[place])
        usage = Usage(1, int(is_called), input_tokens=tokens, output_tokens=int(tokens > 0), seconds=1.0 + is_called)
        text = f"Answer: ({'A' if self.right[place] else 'B'})"
        if self.boxes is not None:
            return Reply(text, usage=usage, steps=tuple(map(_crop_step, self.boxes[place] if is_called else ())))
        return Reply(text, usage=usage, steps=(self.step(question, place),) if is_called else ())

    def step(self, question: Question, place: int) -> Step:
        """Return a call of the puzzle tool, whose rule answers (A) if `best` is 0."""
        confidence = 0.9 if self.confidence is None else float(self.confidence[place])
        results: Json = {} if self.right_output is None else {"best": 0 if self.right_output[place] else 1}
        version = self.versions[place] if self.versions else "drawn"
        names = [f"img:{n + 1}" for n in range(len(question.images))]
        data: dict[str, Json] = {"images": names, "args": {}, "data": results, "confidence": confidence}
        return Step("tool", "jigsaw", "a finding", 0.1, data={**data, "backend": "classical", "version": version})


def _crop_step(box: Box) -> Step:
    """Return a call of the crop tool with a box of the first picture."""
    args: Json = {"box": {"x0": box.x0, "y0": box.y0, "x1": box.x1, "y1": box.y1}}
    data: dict[str, Json] = {"images": ["img:1"], "args": args, "data": {}, "confidence": 1.0}
    return Step("tool", "crop", "a crop", 0.1, data={**data, "backend": "classical", "version": "drawn"})


def annotated_questions(rng: np.random.Generator, size: int, pictures: int = 0) -> list[Question]:
    """Return questions about pictures of 1000 x 800 px, each picture with one annotated box.

    With `pictures`, the questions share this number of pictures.
    """
    with_boxes = []
    for question in questions(size, pictures):
        image = replace(question.images[0], width=1000, height=800)
        with_boxes.append(replace(question, images=(image,), evidence=(AnnotatedPlace(random_box(rng, 60, 120)),)))
    return with_boxes


def random_box(rng: np.random.Generator, least: int, most: int) -> Box:
    """Return a box inside of a picture of 1000 x 800 px, with sides of `least` to `most` px."""
    width, height = (int(side) for side in rng.integers(least, most + 1, 2))
    x, y = int(rng.integers(0, 1000 - width)), int(rng.integers(0, 800 - height))
    return Box(x, y, x + width, y + height)


def box_around(box: Box, margin: int = 40) -> Box:
    """Return the box with a margin, inside of a picture of 1000 x 800 px."""
    sides = max(0, box.x0 - margin), max(0, box.y0 - margin), min(1000, box.x1 + margin), min(800, box.y1 + margin)
    return Box(*sides)


def puzzles(size: int) -> list[Question]:
    """Return puzzles with two pieces, which the rule of the puzzle tool can answer."""
    pieces = ("the second image", "the third image")
    return [replace(question, images=question.images * 3, choices=pieces) for question in questions(size)]


def write_world(
    path: Path, request: Sequence[Question], solvers: Mapping[str, DrawnSolver], **identity: Json
) -> RunFolder:
    """Write a run folder of these solvers."""

    def attempt(solver: DrawnSolver, place: int, question: Question) -> Attempt:
        parts = (question.text, *(ImageRef(f"img:{n + 1}", image) for n, image in enumerate(question.images)))
        prompt = Prompt(parts, question.kind, question.choices, route=question.route)
        return Attempt(question.id, (Exchange(prompt, solver.reply(question, place)),), 0.5, started=0.0)

    attempts = {name: [attempt(current, *row) for row in enumerate(request)] for name, current in solvers.items()}
    facts: dict[str, Json] = {"model": {"model": "drawn"}, "tool_output": "real", **identity}
    return write_run(path, request, attempts, facts)


def comparison_of(folder: Path, request: Sequence[Question], **runs: Mapping[str, DrawnSolver]) -> Comparison:
    """Compare runs that are named by their tool output."""
    paths = [write_world(folder / name, request, solvers, tool_output=name).path for name, solvers in runs.items()]
    return compare(compare_paths(paths).solvers)


def sentences_of(comparison: Comparison) -> dict[str, str]:
    """Return the sentences of a conclusion, by their id, without its limits."""
    return {sentence.id: sentence.text for sentence in conclusion(comparison, limits=False)}


def changed(rng: np.random.Generator, right: Right, up: float, down: float) -> Right:
    """Return the answers after turning wrong ones right (a share `up` of all answers) and right ones wrong (`down`)."""
    draws, share = rng.random(len(right)), float(right.mean())
    return np.where(right, draws >= down / max(share, 1e-9), draws < up / max(1 - share, 1e-9))


def a_gain_of_the_margin_is_not_equal(folder: Path, rng: np.random.Generator) -> bool:
    """With a true gain of 5 points and a margin of 5 points, equality is asserted in at most about 5 % of draws."""
    alone = np.arange(400) % 2 == 0
    tools = changed(rng, alone, 0.1, 0.05)
    solvers = {"controller": DrawnSolver(tools, np.ones(400, bool)), "mllm": DrawnSolver(alone)}
    return "equal.shown" in sentences_of(comparison_of(folder, questions(400), real=solvers))


def few_questions_are_not_equal(folder: Path, rng: np.random.Generator) -> bool:
    """If 2 or 3 of 40 questions change, neither a difference nor equality within 5 points is asserted."""
    alone = rng.random(40) < 0.5
    tools = alone ^ (rng.random(40) < 0.06)
    solvers = {"controller": DrawnSolver(tools, np.ones(40, bool)), "mllm": DrawnSolver(alone)}
    return "equal.shown" in sentences_of(comparison_of(folder, questions(40), real=solvers))


def outputs_that_decide_are_not_ignored(folder: Path, rng: np.random.Generator) -> bool:
    """If the model follows the output and perfect output makes it right, no sentence says that it ignores outputs."""
    values, alone, result = np.ones(120, bool), rng.random(120) < 0.4, rng.random(120) < 0.8
    real = {"controller": DrawnSolver(result, values, result), "mllm": DrawnSolver(alone)}
    blank, oracle = ({"controller": DrawnSolver(right, values, result)} for right in (alone, values))
    text = sentences_of(comparison_of(folder, puzzles(120), real=real, blank=blank, oracle=oracle))
    return "used.shown" in text


def ignored_outputs_are_counted(folder: Path, rng: np.random.Generator) -> bool:
    """If the model ignores all tools, the sentence counts the outputs that it needed."""
    values, alone, result = np.ones(200, bool), rng.random(200) < 0.4, rng.random(200) < 0.8
    solvers = {"controller": DrawnSolver(alone, values, result)}
    real = {**solvers, "mllm": DrawnSolver(alone)}
    message = sentences_of(comparison_of(folder, puzzles(200), real=real, blank=solvers, oracle=solvers))
    needed = int((result & ~alone).sum())
    text = message.get("used.shown", "")
    return f"f {needed} right tool outputs that the model needed, it used 0 (" not in text or "Even perfect" not in text


def calls_by_chance_are_not_misplaced(folder: Path, rng: np.random.Generator) -> bool:
    """Calls are independent of what the model gets right alone: at most about 5 % of draws assert a difference."""
    calls, alone = rng.random(120) < 0.5, rng.random(120) < 0.5
    solvers = {"controller": DrawnSolver(alone, calls), "mllm": DrawnSolver(alone)}
    return "used.shown" in sentences_of(comparison_of(folder, puzzles(120), real=solvers))


def a_model_without_room_gains_nothing(folder: Path, rng: np.random.Generator) -> bool:
    """Only for a model that is right on all questions may the conclusion say that it leaves no room for a gain."""
    values, unsure = np.ones(60, bool), rng.random(60) < 0.5
    results = []
    for name, alone in (("sure", values), ("unsure", unsure)):
        solvers = {"controller": DrawnSolver(rng.random(60) < 0.9, values), "mllm": DrawnSolver(alone)}
        results.append("room.none" in sentences_of(comparison_of(folder / name, puzzles(60), real=solvers)))
    return results != [True, False]


def specialists_alike_everywhere_are_not_weak(folder: Path, rng: np.random.Generator) -> bool:
    """Specialists are right on 70 % of questions, called or not: at most about 5 % of draws assert a difference."""
    calls, alone = rng.random(120) < 0.5, rng.random(120) < 0.5
    specialist = DrawnSolver(rng.random(120) < 0.7)
    real = {"controller": DrawnSolver(alone, calls), "mllm": DrawnSolver(alone), "specialist": specialist}
    text = sentences_of(comparison_of(folder, puzzles(120), real=real))
    return any(case.startswith("calls.") for case in text)


def looks_by_chance_find_nothing(folder: Path, rng: np.random.Generator) -> bool:
    """If crops ignore the annotated place, "looks at the place" is asserted in at most about 5 % of draws."""
    request, values = annotated_questions(rng, 120), np.ones(120, bool)
    boxes = [[random_box(rng, 200, 400) for _ in range(1 + place % 3)] for place in range(120)]
    right = rng.random(120) < 0.5
    solvers = {"controller": DrawnSolver(right, values, boxes=boxes), "mllm": DrawnSolver(right)}
    return "places.found" in sentences_of(comparison_of(folder, request, real=solvers))


def looks_are_counted(folder: Path, rng: np.random.Generator) -> bool:
    """Of 120 crops about 60 % contain the annotated box, and only these help: both printed shares are correct."""
    request, values, is_at_place = annotated_questions(rng, 120), np.ones(120, bool), rng.random(120) < 0.6
    targets = [annotation.place for question in request for annotation in question.evidence]
    boxes = [[box_around(place) if hit else _away(place)] for place, hit in zip(targets, is_at_place, strict=True)]  # type: ignore[arg-type]
    right = np.where(is_at_place, rng.random(120) < 0.9, rng.random(120) < 0.3)
    solvers = {"controller": DrawnSolver(right, values, boxes=boxes), "mllm": DrawnSolver(rng.random(120) < 0.5)}
    text = sentences_of(comparison_of(folder, request, real=solvers)).get("places.found", "")
    at_place, elsewhere = (f"{100 * right[side].mean():.0f}%" for side in (is_at_place, ~is_at_place))
    shares = f"{at_place} of the questions where they cover it and on {elsewhere}"
    return f"{100 * is_at_place.mean():.0f}% of its 120 tool calls" not in text or shares not in text


def other_words_that_change_nothing(folder: Path, rng: np.random.Generator) -> bool:
    """Simulate a model for which paraphrasing has no effect: such an effect is asserted in about 5 % of draws."""
    values = np.ones(120, bool)
    real = {"controller": DrawnSolver(rng.random(120) < 0.6, values), "mllm": DrawnSolver(rng.random(120) < 0.5)}
    other = {"controller": DrawnSolver(rng.random(120) < 0.6, values)}
    text = sentences_of(comparison_of(folder, puzzles(120), real=real, paraphrased=other))
    return "words.matter" in text or "words.open" not in text


def words_that_carry_the_gain(folder: Path, rng: np.random.Generator) -> bool:
    """Simulate a model that understands only one wording; return whether the sentence misses the difference."""
    values, alone = np.ones(120, bool), rng.random(120) < 0.4
    right = np.where(rng.random(120) < 0.6, True, alone)
    real = {"controller": DrawnSolver(right, values), "mllm": DrawnSolver(alone)}
    comparison = comparison_of(folder, puzzles(120), real=real, paraphrased={"controller": DrawnSolver(alone, values)})
    points = f"{100 * (alone.mean() - right.mean()):+.0f} points"
    return f"change the score by {points}" not in sentences_of(comparison).get("words.matter", "")


def _away(box: Box) -> Box:
    """Return a box in the other half of the picture."""
    left = 0 if box.x0 > 500 else 800
    return Box(left, 100, left + 150, 300)


REVIEW_WORLDS: Mapping[str, World] = {
    "a gain of the margin is called equal (5 % expected)": a_gain_of_the_margin_is_not_equal,
    "40 questions are called equal": few_questions_are_not_equal,
    "outputs that decide are called ignored": outputs_that_decide_are_not_ignored,
    "ignored outputs are counted otherwise": ignored_outputs_are_counted,
    "no room, said otherwise": a_model_without_room_gains_nothing,
    "specialists alike are called weak (5 % expected)": specialists_alike_everywhere_are_not_weak,
    "chance looks are reported to find the place (5 % expected)": looks_by_chance_find_nothing,
    "looks at the place are counted otherwise": looks_are_counted,
    "chance effects of other words are reported (5 % expected)": other_words_that_change_nothing,
    "the gain depends on the wording, paraphrased": words_that_carry_the_gain,
    "calls by chance are called misplaced (5 % expected)": calls_by_chance_are_not_misplaced,
}
