"""Compare predicted scanpaths with published statistics of people: lengths, directions, durations, returns.

    python -m bench.scanpath [--data DIR] [--half odd] [--scenes 60] [--seed 1000] [--fixations 6] [--json FILE]

DIR has BLINK's layout; the photographs are those of Spatial_Relation and Relative_Depth. The constants of
`tools/scanpath/fixations.py` were set by hand on its even rows, so `odd` ones are reported. Degrees assume that the
image fills a screen of 54 x 35 degrees as far as its shape allows.

Similarity to one person's path (MultiMatch) is not measured, because no recorded human paths are available. Sources of
the published column:

- M00: Malinov, Epelboim, Herst and Steinman 2000, Vision Research 40: 3,375 saccades of people who look at and tap
  things, 53 % below 5 and 83 % below 15 degrees. No comparable count for photographs of this size was found: mean and
  median grow with the size of the image (von Wartburg et al. 2007, Perception 36).
- T08: Tatler and Vincent 2008, Journal of Eye Movement Research 2: lengths have a long tail to the right.
- F08: Foulsham, Kingstone and Underwood 2008, Vision Research 48: horizontal saccades predominate.
- C20: Cronin et al. 2020, Frontiers in Psychology 10: 298 ms, 285 ms for the first, 100 people on 100 photographs.
- G20: Guy, Lancry-Dayan and Pertzov 2020, Journal of Vision 20: durations have a long tail to the right.
- Z22: Zhang et al. 2022, PLOS Computational Biology 18: 44,328 of 217,440 fixations return, over several tasks.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from scipy.stats import skew

from bench._accuracy import blink_rows
from bench._frame import options, write_json
from hybrid.core.images import decode
from hybrid.samples.pop_out import pop_out
from hybrid.samples.seeds import generator
from hybrid.tool import Pixels
from tools.saliency.cues import salience
from tools.scanpath.fixations import Fixation, degrees_per_px, fixate, returns

TASKS = ("Spatial_Relation", "Relative_Depth")
HALVES = {"all": slice(None), "even": slice(0, None, 2), "odd": slice(1, None, 2)}
# A saccade counts as horizontal (vertical) if it deviates at most this much from the horizontal (vertical).
SIDEWAYS_DEG = 22.5


@dataclass(frozen=True)
class SeenPath:
    """A predicted path, and the (H, W) of its image."""

    fixations: Sequence[Fixation]
    size: tuple[int, int]

    def saccades(self) -> npt.NDArray[np.float64]:
        """Return dx, dy of each saccade in degrees, (n - 1, 2)."""
        spots = [(fixation.x * self.size[1], fixation.y * self.size[0]) for fixation in self.fixations]
        return np.diff(np.array(spots).reshape(-1, 2), axis=0) * degrees_per_px(self.size)


PUBLISHED: Mapping[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def statistics(paths: Sequence[SeenPath]) -> dict[str, float]:
    """Return the number of paths with at least two fixations each, and the statistics of `PUBLISHED`."""
    saccades = np.concatenate([path.saccades() for path in paths])
    length = np.hypot(saccades[:, 0], saccades[:, 1])
    from_horizontal = np.degrees(np.arctan2(np.abs(saccades[:, 1]), np.abs(saccades[:, 0])))
    times = np.array([fixation.ms for path in paths for fixation in path.fixations], np.float64)
    second = np.array([len(returns(path.fixations, path.size)) for path in paths])
    values = (
        *(np.median(length), length.mean(), (length < 5).mean(), (length < 15).mean(), skew(length)),
        *((from_horizontal <= SIDEWAYS_DEG).mean(), (from_horizontal >= 90 - SIDEWAYS_DEG).mean()),
        *(times.mean(), np.mean([path.fixations[0].ms for path in paths]), skew(times)),
        *(second.sum() / len(times), (second > 0).mean()),
    )
    return {"paths": len(paths), **{name: float(value) for name, value in zip(PUBLISHED, values, strict=True)}}


def photographs(folder: Path, half: str) -> Iterable[Pixels]:
    """Yield the photographs of a folder in BLINK's layout, one half of the rows of each task."""
    for task in TASKS:
        for row in blink_rows(folder, task, columns=("idx", "image_1"))[HALVES[half]]:
            yield decode(row["image_1"]["bytes"], row["idx"])


def generated(number: int, seed: int) -> Iterable[Pixels]:
    """Yield generated images of three to six things."""
    for index in range(number):
        rng = generator("evaluate", seed, index)
        yield pop_out(rng, int(rng.integers(3, 7))).draw()


def predicted(pictures: Iterable[Pixels], fixations: int) -> list[SeenPath]:
    """Return the path that the weight-free backend predicts for each image."""
    return [SeenPath(fixate(salience(pixels), fixations, 0), (pixels.shape[0], pixels.shape[1])) for pixels in pictures]


def table(sets: Mapping[str, Mapping[str, float]]) -> str:
    """Return a table of the statistics of each set, and the published ones."""
    lines = [f"{'':18}" + "".join(f"{name:>14}" for name in sets) + "   people"]
    lines.append(f"{'paths':18}" + "".join(f"{item['paths']:>14}" for item in sets.values()))
    for name, published in PUBLISHED.items():
        lines.append(f"{name:18}{''.join(f'{entry[name]:>14.3f}' for entry in sets.values())}   {published}")
    return "\n".join(lines)


def main() -> None:
    """Print the table."""
    flags = {"--data": Path, "--half": ("odd", "even", "all"), "--scenes": 60, "--seed": 1000, "--fixations": 6}
    arguments = options(__doc__, {**flags, "--json": Path})
    if arguments.fixations < 3 or arguments.scenes < 1:
        raise SystemExit("--fixations must be at least 3 (a return to a place takes three), and --scenes at least 1")
    cv2.setNumThreads(1)
    payload = {"generated": statistics(predicted(generated(arguments.scenes, arguments.seed), arguments.fixations))}
    if arguments.data is not None:
        paths = predicted(photographs(arguments.data, arguments.half), arguments.fixations)
        payload["photographs"] = statistics(paths)
    print(table(payload))
    print("MultiMatch with people: not measured, no recorded path is available.")
    write_json(arguments.json, payload)


if __name__ == "__main__":
    main()
