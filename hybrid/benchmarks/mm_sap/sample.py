"""Generated questions for MM-SAP: visible facts, facts that need knowledge, and facts that the picture cannot show.

One parquet file per set, with the columns question, options, answer, image and type. BasicVisQA counts, names colours
and locates objects in rendered scenes; KnowVisQA shows flags; BeyondVisQA asks for facts that no picture of such a
scene shows, so the refusal is right by construction. A score on them is never an MM-SAP result.
Run: `from hybrid.benchmarks.mm_sap.sample import SETS, write; write(Path("sample"), tuple(SETS), per_task=20, seed=0)`.
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hybrid.benchmarks._shared.samples import check_item, check_request, indices_to_draw, table_schema, write_parquet
from hybrid.samples.item import jpeg, pick, until
from hybrid.samples.layouts import SHAPES, Name, arrange, backdrop, high_camera, random_names
from hybrid.samples.scenes import render
from hybrid.samples.seeds import Purpose, generator
from hybrid.samples.textures import NAMED_COLOURS
from hybrid.tool import Pixels

WIDTH, HEIGHT = 400, 300
REFUSAL = "Sorry, I can't help with it"

FACTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
# The three colours of each country's flag: vertical stripes from left to right, and horizontal stripes from top to
# bottom.
UPRIGHT: Mapping[str, Sequence[str]] = FACTS["upright"]
LEVEL: Mapping[str, Sequence[str]] = FACTS["level"]


@dataclass(frozen=True, eq=False)
class SetQuestion:
    """A question, its picture (H, W, 3), and four options besides the refusal; `right` is one of these or None."""

    question: str
    type: str
    pixels: Pixels
    options: tuple[str, str, str, str]
    right: str | None


def _scene(rng: np.random.Generator, names: Sequence[Name]) -> Pixels:
    camera = high_camera(rng, WIDTH, HEIGHT)
    solids = until("arrangement of objects side by side", lambda: arrange(rng, camera, names))
    return render(backdrop(rng, solids, None, calm=True), camera, rng).rgb


def _four(rng: np.random.Generator, right: str, others: Sequence[str]) -> tuple[str, str, str, str]:
    wrong = [str(other) for other in rng.permutation([other for other in others if other != right])]
    a, b, c = wrong[:3]
    return right, a, b, c


def _basic(rng: np.random.Generator) -> SetQuestion:
    if pick(rng, 2):
        count = int(rng.integers(1, 6))
        target, other = random_names(rng, 2)
        pixels = _scene(rng, [*[target] * count, *[other] * int(rng.integers(1, 3))])
        options = _four(rng, str(count), [str(number) for number in range(1, 8)])
        return SetQuestion(f"How many {target}s are in the picture?", "Counting", pixels, options, str(count))
    shape = SHAPES[pick(rng, len(SHAPES))]
    other_shape = next(name for name in SHAPES if name != shape)
    shapes = (shape, other_shape, other_shape)
    names = [Name(name.colour, shape) for name, shape in zip(random_names(rng, len(shapes)), shapes, strict=True)]
    right = names[0].colour
    options = _four(rng, right, list(NAMED_COLOURS))
    return SetQuestion(f"What colour is the {shape} in the picture?", "Color", _scene(rng, names), options, right)


def _know(rng: np.random.Generator) -> SetQuestion:
    flags = UPRIGHT if pick(rng, 2) else LEVEL
    right = str(rng.permutation(list(flags))[0])
    height, width = 80 + 4 * pick(rng, 10), 150 + 6 * pick(rng, 10)
    flag = np.zeros((height, width, 3), np.uint8)
    for place, colour in enumerate(flags[right]):
        rgb = FACTS["colours"][colour]
        if flags is UPRIGHT:
            flag[:, place * width // 3 : (place + 1) * width // 3] = rgb
        else:
            flag[place * height // 3 : (place + 1) * height // 3] = rgb
    pixels = np.full((HEIGHT, WIDTH, 3), int(rng.integers(90, 190)), np.uint8)
    x, y = int(rng.integers(10, WIDTH - width - 10)), int(rng.integers(10, HEIGHT - height - 10))
    pixels[y : y + height, x : x + width] = flag
    options = _four(rng, right, [*UPRIGHT, *LEVEL])
    return SetQuestion("Which country does this flag belong to?", "Flags", pixels, options, right)


def _beyond(rng: np.random.Generator) -> SetQuestion:
    present_name, other, absent = random_names(rng, 3)
    fact = FACTS["beyond"][pick(rng, len(FACTS["beyond"]))]
    a, b, c, d = fact["options"]
    question = fact["question"].format(there=present_name, absent=absent)
    return SetQuestion(question, fact["type"], _scene(rng, [present_name, other]), (a, b, c, d), None)


SETS: Mapping[str, Callable[[np.random.Generator], SetQuestion]] = {
    "BasicVisQA": _basic,
    "KnowVisQA": _know,
    "BeyondVisQA": _beyond,
}


def item(name: str, index: int, seed: int, purpose: Purpose = "sample") -> SetQuestion:
    """Make item `index` (from 0) of a set. Raises `UsageError` for an unknown set or a negative number."""
    check_item(name, SETS, index, seed)
    return SETS[name](generator(purpose, seed, zlib.crc32(name.encode()), 1, index))


def row(name: str, index: int, seed: int, purpose: Purpose = "sample") -> dict[str, object]:
    """Make a row: five options in a seeded order, and the letter of the right option (BeyondVisQA: the refusal)."""
    generated = item(name, index, seed, purpose)
    order = generator(purpose, seed, zlib.crc32(name.encode()), 2, index).permutation(5)
    options = [(*generated.options, REFUSAL)[place] for place in order]
    return {
        "question": generated.question,
        "options": options,
        "answer": "ABCDE"[options.index(generated.right or REFUSAL)],
        "image": {"bytes": jpeg(generated.pixels), "path": None},
        "type": generated.type,
    }


def write(
    folder: Path, tasks: Sequence[str], per_task: int, seed: int, purpose: Purpose = "sample"
) -> tuple[Path, ...]:
    """Write `data/SET-00000-of-00001.parquet` for each set; the same call gives the same bytes on one machine.

    Raises `UsageError` like `check_request`; nothing is written then.
    """
    check_request(tasks, SETS, per_task, seed)
    columns = ("text", "question"), ("texts", "options"), ("text", "answer"), ("image", "image"), ("text", "type")
    return tuple(
        write_parquet(
            folder / "data" / f"{name}-00000-of-00001.parquet",
            [[row(name, index, seed, purpose) for index in indices_to_draw(name, per_task)]],
            table_schema(*columns, features=False),
        )
        for name in tasks
    )
