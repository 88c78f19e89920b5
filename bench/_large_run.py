"""A large run on disk, made by the code that writes real ones: no model is asked and no tool runs.

    python -m bench._large_run RUN [--questions 20000]       # images go to $HYBRID_HOME

BLINK's tasks in equal shares, three solvers, a few hundred distinct small images. The controller calls a tool on most
questions and sees an overlay, the MLLM alone replies once, and the specialist calls the tool and decides by its rule.
Right answers are drawn with a seed; every question of every solver has a trace.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench._frame import options
from bench._runs import write_run as write_attempts
from hybrid.core.images import ImageStore, home
from hybrid.core.types import (
    Attempt,
    Box,
    Exchange,
    ImageRef,
    Json,
    Kind,
    Prompt,
    Question,
    Reply,
    Step,
    StoredImage,
    Usage,
)
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load

PICTURES = 300
# Width and height.
SIZE_PX = (96, 72)
STARTED = 1_790_000_000.0
LETTERS = "AB"
WORDS = (
    *("the left object", "the right object", "closer to the camera", "further away", "behind the table"),
    *("in front of the window", "a red mug", "a grey chair", "the same point", "another point"),
)


@dataclass(frozen=True)
class PicturePair:
    """An image, and the same image with something drawn over it."""

    plain: StoredImage
    overlay: StoredImage


def pictures(store: ImageStore) -> list[PicturePair]:
    """Make smooth coloured noise images with a bar."""
    results = []
    for number in range(PICTURES):
        rng = np.random.default_rng(number)
        coarse = rng.integers(0, 256, (SIZE_PX[1] // 12, SIZE_PX[0] // 12, 3), dtype=np.uint8)
        plain = np.kron(coarse, np.ones((12, 12, 1), dtype=np.uint8))
        overlay = plain.copy()
        overlay[30:36, 10:80] = (255, 0, 0)
        results.append(PicturePair(store.put_pixels(plain), store.put_pixels(overlay)))
    return results


def questions(count: int, pairs: list[PicturePair]) -> Iterator[Question]:
    """Yield `count` questions, round-robin over BLINK's tasks."""
    tasks = tuple(load("hybrid.benchmarks", "blink").card.tasks)
    for number in range(count):
        task = tasks[number % len(tasks)]
        choices = (WORDS[number % len(WORDS)], WORDS[(number + 1 + number // 10) % len(WORDS)])
        text = (
            f"Question {number} of this set: look at the marked points and say which of the following describes the "
            f"picture.\nSelect from the following choices.\n(A) {choices[0]}\n(B) {choices[1]}"
        )
        identity, images = f"val_{task}_{number // len(tasks) + 1}", (pairs[number % len(pairs)].plain,)
        target = f"({LETTERS[number % 2]})"
        yield Question(identity, task, images, text, Kind.CHOICE, choices, target, task, groups={"images": "1"})


@dataclass(frozen=True)
class Draw:
    """A solver's answer to a question about an image."""

    pair: PicturePair
    letter: str
    calls: bool


def _tool_step(draw: Draw) -> Step:
    width, height = SIZE_PX
    data: dict[str, Json] = {
        "images": ["img:1"],
        "args": {"points": [{"x": 12.5, "y": 40.0}, {"x": 61.0, "y": 22.5}]},
        "data": {"depth_0_1": [0.31, 0.74], "order": ["B", "A"], "margin_0_1": 0.43},
        "confidence": 0.82,
        "backend": "classical",
        "version": "cues-2",
    }
    overlay = ImageRef("img:1.1", draw.pair.overlay, "img:1", Box(0, 0, width, height))
    text = f"Point {draw.letter} is nearer: 0.74 against 0.31 (0..1, larger is nearer), margin 0.43."
    return Step("tool", "depth", text, 0.031, data=data, images=(overlay,))


def _model_step(draw: Draw, text: str, *, calls: bool = False) -> Step:
    sent: Json = {"name": "img:1", "sha256": draw.pair.plain.sha256, "width": SIZE_PX[0], "height": SIZE_PX[1]}
    data: dict[str, Json] = {"images_sent": [sent]}
    mapping: dict[str, Json] = {"tool_calls": [{"tool": "depth", "args": {"images": ["img:1"]}}]} if calls else {}
    return Step("model", "made-up:model", text, 1.204, data={**mapping, **data})


def _controller(draw: Draw) -> Reply:
    text = f"The tool says that the second point is nearer, and the picture agrees.\nAnswer: ({draw.letter})"
    looked = (_model_step(draw, "", calls=True), _tool_step(draw)) if draw.calls else ()
    usage = Usage(1 + draw.calls, int(draw.calls), 812, 47, cost_usd=0.0021, seconds=2.4)
    return Reply(text, usage=usage, steps=(*looked, _model_step(draw, text)))


def _specialist(draw: Draw) -> Reply:
    payload: dict[str, Json] = {"specialist_answer": {"letter": draw.letter}}
    steps = (_tool_step(draw), Step("rule", "specialist", f"depth says ({draw.letter})", data=payload))
    return Reply(f"Answer: ({draw.letter})", usage=Usage(0, 1, seconds=0.031), steps=steps)


def _alone(draw: Draw) -> Reply:
    text = f"Answer: ({draw.letter})"
    usage = Usage(1, 0, 301, 9, cost_usd=0.0008, seconds=1.1)
    return Reply(text, usage=usage, steps=(_model_step(draw, text),))


# Each solver's answer, and its probability of being right.
SOLVERS: Mapping[str, tuple[Callable[[Draw], Reply], float]] = {
    "controller": (_controller, 0.78),
    "mllm": (_alone, 0.64),
    "specialist": (_specialist, 0.71),
}
# Share of the questions on which the controller calls the tool.
CALLS = 0.7
IDENTITY: Mapping[str, Json] = {
    "hybrid": "0.1.0",
    "data": {"kind": "folder", "sha256": "5" * 64},
    "model": {"model": "made-up:model", "temperature": 0.0},
}


def write_run(out: Path, count: int, seed: int = 0) -> RunFolder:
    """Write the run. Its images go to the store in `$HYBRID_HOME`."""
    text = pictures(ImageStore(home() / "images"))
    items = tuple(questions(count, text))

    def attempts(name: str) -> Iterator[Attempt]:
        says, skill = SOLVERS[name]
        rng = random.Random(f"{seed} {name}")
        for number, question in enumerate(items):
            right = rng.random() < skill
            letter = LETTERS[(number + (not right)) % 2]
            draw = Draw(text[number % len(text)], letter, rng.random() < CALLS)
            parts = (question.text, ImageRef("img:1", draw.pair.plain))
            prompt = Prompt(parts, question.kind, question.choices, route=question.route)
            yield Attempt(question.id, (Exchange(prompt, says(draw)),), 2.5, started=STARTED + number)

    tools: Json = {"depth": {"backend": "classical:cues-2", "code": "0" * 12}}
    solvers: dict[str, Json] = {name: {"tools": {} if name == "mllm" else tools} for name in SOLVERS}
    return write_attempts(out, items, {name: attempts(name) for name in SOLVERS}, IDENTITY, solvers)


def main() -> None:
    """Write a large run."""
    flags = options(__doc__, {"run": Path, "--questions": 20_000})
    write_run(flags.run, flags.questions)


if __name__ == "__main__":
    main()
