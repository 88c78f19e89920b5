"""Count the questions of each kind that the rule by_text answers, and answers correctly, on generated scenes.

    python -m bench.by_text --scenes 100 --seed 0
    python -m bench.by_text --recipes 20            # 20 generated questions per task of each recipe

The weight-free backends find drawn boxes and compare depth. Detection has no such backend: it returns the true boxes,
so rows that use it show the rules with a perfect detector. The attributes tool and ocr are not asked.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import cv2
import numpy as np

import hybrid
from bench._accuracy import finding_of
from bench._frame import options
from hybrid.benchmarks.base import Benchmark, show
from hybrid.benchmarks.questions.reading import ROUTE
from hybrid.core.images import ImageStore, decode
from hybrid.core.types import LETTERS, Box, Finding, ImageRef, Json, Kind, Outcome, Prompt, Question, StoredImage
from hybrid.plugins.registry import load, load_each
from hybrid.running.data import mount
from hybrid.running.data import questions as questions_of
from hybrid.samples.item import jpeg, pick, until
from hybrid.samples.layouts import SHAPES, Name, arrange, backdrop, high_camera
from hybrid.samples.scenes import FIRST_SOLID, render
from hybrid.samples.seeds import generator
from hybrid.samples.textures import NAMED_COLOURS
from hybrid.tool import Pixels, Tool
from tools.detection import report
from tools.detection.models import Detection
from tools.rules.questions import BY_TEXT
from tools.rules.questions.recognising import recognise_question as recognised
from tools.rules.questions.sentence import Unclear

WIDTH, HEIGHT = 640, 480
# Minimum ratio of depths at which one thing counts as farther than another.
APART: Final = 1.25
RED: Final = (255, 0, 0)
BLUE: Final = (0, 0, 255)


@dataclass(frozen=True)
class Solid:
    """A thing in a scene: its name, its box in pixels, and its distance in metres."""

    name: str
    box: Box
    depth_m: float


@dataclass(frozen=True)
class Asked:
    """A question about an image, the index of the right choice, and its row in the table."""

    row: str
    text: str
    choices: tuple[str, ...]
    answer: int
    pixels: Pixels


@dataclass
class SceneTools:
    """The tools for one image: weight-free backends, and a detector that returns the true boxes."""

    pixels: Pixels
    solids: Sequence[Solid]
    notes: list[str] = field(default_factory=list)

    async def tool(self, name: str, images: Sequence[str], args: Mapping[str, Json]) -> Finding:
        """Return the output of one tool."""
        del images
        tool: Tool = load("tools", name)
        arguments = tool.args.model_validate(dict(args))
        needs: dict[str, tuple[Finding, ...]] = {}
        if name == "detection":
            names = [str(item) for item in arguments.model_dump()["names"]]
            seen = [Detection(solid.name, 0.9, solid.box) for solid in self.solids if solid.name in names]
            evidence = report(self.pixels, names, seen, 0.2)
            return Finding(evidence.text, evidence.data, evidence.confidence, "true boxes", "1")
        backend = "learned" if name == "relation" else "classical"
        for need in tool.backend(backend).needs:
            expected = need.args(arguments) if need.given is None else need.given(arguments, needs)
            if expected is not None:
                needs[need.tool] = (await self.tool(need.tool, ("img:1",), expected),)
        return finding_of(tool, backend, self.pixels, arguments, needs)

    def rule(self, name: str, text: str) -> None:
        """Record why the rule abstains."""
        self.notes.append(f"{name}: {text}")


def scene(rng: np.random.Generator) -> tuple[Pixels, tuple[Solid, ...]]:
    """Draw an image of four things that do not hide each other, two of them with the same name."""
    colours = [str(colour) for colour in rng.permutation(list(NAMED_COLOURS))[:3]]
    names = [Name(colour, SHAPES[pick(rng, 2)]) for colour in colours]
    names.append(names[2])
    camera = high_camera(rng, WIDTH, HEIGHT)
    solids = until("arrangement of things side by side", lambda: arrange(rng, camera, names))
    view = render(backdrop(rng, solids, None, calm=rng.random() < 0.5), camera, rng)
    results = []
    for place, name in enumerate(names):
        rows, columns = np.nonzero(view.ids == FIRST_SOLID + place)
        box = Box(float(columns.min()), float(rows.min()), float(columns.max() + 1), float(rows.max() + 1))
        results.append(Solid(str(name), box, float(np.median(view.depth_m[rows, columns]))))
    return view.rgb, tuple(results)


def questions(rng: np.random.Generator, pixels: Pixels, solids: Sequence[Solid]) -> Iterator[Asked]:
    """Yield questions about a scene for the rows of the table; a row without a clear answer is left out."""
    solid, other, twin = solids[0], solids[1], solids[2]
    copied, width = pixels.copy(), int(rng.integers(2, 5))
    for box, ink in ((solid.box, RED), (other.box, BLUE)):
        cv2.rectangle(copied, (int(box.x0), int(box.y0)), (int(box.x1) - 1, int(box.y1) - 1), ink, width)
    copied, plain = (decode(jpeg(item, 90), "a scene") for item in (copied, pixels))
    pair = (solid.name, other.name)
    if max(solid.depth_m, other.depth_m) / min(solid.depth_m, other.depth_m) > APART:
        nearer = 0 if solid.depth_m < other.depth_m else 1
        marked = f"the {solid.name} (highlighted by a red box) or the {other.name} (highlighted by a blue box)"
        yield Asked("depth, drawn boxes", f"Which is closer to the camera, {marked}?", pair, nearer, copied)
        yield Asked(
            "depth, names", f"Which is closer to the camera, the {pair[0]} or the {pair[1]}?", pair, nearer, plain
        )
    across = (solid.box.x0 + solid.box.x1 - other.box.x0 - other.box.x1) / 2
    if abs(across) > 0.05 * WIDTH:
        side = 0 if across < 0 else 1
        boxes = f"the {solid.name} (annotated by the red box) to the left or right of the {other.name}"
        yield Asked("relation, drawn box", f"Is {boxes}?", ("left", "right"), side, copied)
        text = f"Is the {solid.name} on the left or right side of the {other.name}?"
        yield Asked("relation, names", text, ("left", "right"), side, plain)
        text = "Is the object in the red box to the left of the object in the blue box?"
        yield Asked("relation, two drawn boxes", text, ("Yes", "No"), side, copied)
    middle = (solid.box.x0 + solid.box.x1) / 2 / WIDTH
    halves = ("The left side.", "The right side.")
    text = f"Which side of the image is the {solid.name} on?"
    yield Asked("position, names", text, halves, 0 if middle < 0.5 else 1, plain)
    text = f"How many {twin.name}s are there in the image?"
    yield Asked("counting, names", text, ("1", "2", "3"), 1, plain)
    yield Asked("existence, names", f"Is there a {solid.name} in the image?", ("yes", "no"), 0, plain)
    absent = next(f"{colour} ball" for colour in NAMED_COLOURS if all(colour not in entry.name for entry in solids))
    yield Asked("existence, names", f"Is there a {absent} in the image?", ("yes", "no"), 1, plain)
    text = f"Where is the {twin.name} in the image?"
    yield Asked("one of two meant (to abstain)", text, ("left", "right"), -1, plain)


async def answered(request: Asked, solids: Sequence[Solid]) -> int | None:
    """Return the index of the choice that the rule selects; None for an abstention."""
    lines = [f"({letter}) {choice}" for letter, choice in zip(LETTERS, request.choices, strict=False)]
    ref = ImageRef("img:1", StoredImage("0" * 64, WIDTH, HEIGHT, "image/jpeg"))
    prompt = Prompt((ref, "\n".join([request.text, *lines])), Kind.CHOICE, request.choices, route="by_text")
    text = await BY_TEXT(prompt, SceneTools(request.pixels, solids))
    return None if text is None else text.choice


async def measure(scenes: int, seed: int) -> Mapping[str, Counter[str]]:
    """Count, for each row, the questions asked, answered and answered correctly."""
    rows: dict[str, Counter[str]] = {}
    for index in range(scenes):
        rng = generator("evaluate", seed, index)
        pixels, solids = scene(rng)
        for question in questions(rng, pixels, solids):
            place = await answered(question, solids)
            row = rows.setdefault(question.row, Counter())
            row.update(asked=1, answered=int(place is not None), right=int(place == question.answer))
    return rows


def of_recipe(benchmark: Benchmark, per_task: int, seed: int) -> Counter[str]:
    """Count the generated questions of a recipe that the rules understand, and those answered without weights."""
    card, limit = benchmark.card, per_task * len(benchmark.card.sample_tasks)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        hybrid.run(
            card.name, solvers=["specialist"], data="sample", seed=seed, limit=limit, backend="classical", out=out
        )
        (solver,) = hybrid.score(out).solvers
        store = ImageStore(Path(folder) / "images")
        source = mount(
            benchmark, "sample", split=None, tasks=(), settings={}, store=store, limit=limit, seed=seed
        ).source
        values = [question for question in questions_of(benchmark, source, limit) if isinstance(question, Question)]
    prompts = [Prompt((*show(item.images), item.text), item.kind, item.choices, route=item.route) for item in values]
    return Counter(
        asked=len(values),
        understood=sum(not isinstance(recognised(prompt), Unclear) for prompt in prompts),
        answered=sum(score.outcome is Outcome.ANSWERED for score in solver.scores),
    )


def main() -> None:
    """Print a line for each row."""
    flags = options(__doc__, {"--scenes": 100, "--seed": 0, "--recipes": 0})
    if flags.recipes:
        # The benchmarks that are asked by text and can generate questions.
        for _, benchmark in load_each("hybrid.benchmarks"):
            if ROUTE not in benchmark.card.routes or not benchmark.card.sample_tasks:
                continue
            counts = of_recipe(benchmark, flags.recipes, flags.seed)
            print(
                f"{benchmark.card.name:16} asked {counts['asked']:4} understood {counts['understood']:4} "
                f"answered without weights {counts['answered']:4}"
            )
        return
    for row, counts in asyncio.run(measure(flags.scenes, flags.seed)).items():
        print(f"{row:32} asked {counts['asked']:4} answered {counts['answered']:4} right {counts['right']:4}")


if __name__ == "__main__":
    main()
