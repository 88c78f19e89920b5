"""Pictures for the embedded model's vision lessons. `look("ground", 100, 0, folder)` draws a hundred pictures.

Things on the ground are placed and rendered as in the generated questions of BLINK, MM-SAP and MVP-Bench, flat things
as in those of HVSBench; all are drawn for training (`hybrid/samples/seeds.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hybrid.core.images import ImageStore
from hybrid.samples.item import jpeg, until
from hybrid.samples.layouts import arrange, backdrop, high_camera, random_names
from hybrid.samples.pop_out import MAX_THINGS, pop_out
from hybrid.samples.scenes import render
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels
from training.sight import View

if TYPE_CHECKING:
    import numpy as np

WIDTH, HEIGHT = 256, 192
# Largest number of things with the first name in a rendered scene; other names have up to three.
MAX_ALIKE: Final = 6
# Name that stands for the benchmark in conversations about these pictures.
SCENES: Final = "scenes"
QUESTION: Final = "What is there to see?"
# Range of the distance of the wall, if there is one, behind things on the ground.
WALL_M: Final = (9.0, 12.0)
# First number of the key of each kind; no generator of questions uses it with training seeds.
KEYS: Final[dict[View, int]] = {"ground": 71, "prominence": 72}


def look(view: View, count: int, seed: int, folder: Path) -> Iterator[dict[str, Any]]:
    """Yield conversations about one picture each as lines for the file; the picture is put into the store of `folder`.

    They contain no description; `pictures.py` adds it.
    """
    store = ImageStore(folder / "images")
    for number in range(count):
        rng = generator("train", KEYS[view], seed, number)
        sample = jpeg(
            on_the_ground(rng) if view == "ground" else pop_out(rng, int(rng.integers(1, MAX_THINGS + 1))).draw()
        )
        text = store.put(sample, f"scene {view} {seed}/{number}")
        values = [{"type": "image", "image": text.sha256}, {"type": "text", "text": QUESTION}]
        turns = [{"role": "user", "content": values}, {"role": "assistant", "content": ""}]
        yield {"benchmark": SCENES, "task": view, "form": "scene", "turns": turns, "tools": []}


def on_the_ground(rng: np.random.Generator) -> Pixels:
    """Draw one to nine things with one to four names, one of which may occur several times."""
    names = random_names(rng, int(rng.integers(1, 5)))
    number = int(rng.integers(1, MAX_ALIKE + 1)) if rng.random() < 0.5 else 1
    camera = high_camera(rng, WIDTH, HEIGHT)
    values = [*[names[0]] * number, *names[1:]]
    solids = until("arrangement of things to look at", lambda: arrange(rng, camera, values, sizes_m=(0.16, 0.36)))
    wall = float(rng.uniform(*WALL_M)) if rng.random() < 0.5 else None
    return render(backdrop(rng, solids, wall, calm=True), camera, rng).rgb
