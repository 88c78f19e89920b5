"""Measure the depth tool: BLINK items, objects of generated scenes, photographs with measured depth.

    python -m bench.depth --data DIR           DIR has BLINK's layout (`DIR/Relative_Depth/val-*.parquet`)
    python -m bench.depth --objects 200        the middles of two objects in a rendered scene, as a model would ask
    python -m bench.depth --measured DIR       `DIR/rgb/NAME.*` and `DIR/depth/NAME.png` (16 bits, 0 unknown)
    python -m bench.depth --fit 160            cues and weights by log loss, on scenes that are used for nothing else
    python -m bench.depth --data DIR --weights DIR_OR_ID [--device cuda]     the learned backend

An undecided item counts one half. On BLINK items, points come from the markers tool, as in a run; `bench.reliability
--task Relative_Depth` asks generated ones. With `--data` and no weights, the score of each cue alone is also printed.
`--fit` chose the cues and their weights on rendered scenes with separate seeds, with walls or haze, raised things and a
depth of field. `--measured` takes pairs of random pixels whose depths differ by a quarter or more, half of them on one
row; the demonstration data of Metric3D (three frames of KITTI with lidar, three of NYU Depth v2) has this layout once
both files of a pair have the same name.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from bench._accuracy import bins, blink_rows, marks_on
from bench._frame import options, write_json
from bench.picture_changes import compressed
from hybrid.core.images import decode
from hybrid.core.types import Json
from hybrid.samples.geometry import steady
from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import FIRST_SOLID, Camera, render
from hybrid.samples.seeds import generator
from hybrid.tool import Backend, Evidence, Pixels, Request
from tools._shared.args import PointArg
from tools._shared.reading import shrink
from tools.depth import SAME_ROW, TOOL, DepthArgs, clean_image, spots_of
from tools.depth.cues import WEIGHTS, WORK_PX, CueMaps, blurred, measure, ranks

# Minimum ratio of the distances of the two points.
APART = 1.25
# Lower bounds of confidence for the rows of the table, with about 15 items per row.
CURVE = (0.0, 0.55, 0.65, 0.8)
FOLDS = 10
# Share of solids that float in the air.
RAISED = 0.25
HAZE_M = (20.0, 400.0)
NO_HAZE_M = 1e5
SIZES = ((500, 375), (500, 333), (375, 500))


@dataclass(frozen=True, eq=False)
class Item:
    """A request about one image, and the letter of the nearer point."""

    request: Request[DepthArgs]
    nearer: str


@dataclass(frozen=True)
class Answer:
    """The score of an item: 1 right, 0 wrong, 0.5 undecided."""

    score: float
    confidence: float
    same_row: bool


@dataclass(frozen=True)
class Difference:
    """Lead of the nearer point in each cue, whether both points are on one row, and the scene."""

    cues: Mapping[str, float]
    same_row: bool
    scene: int = 0


def read_items(folder: Path) -> list[Item]:
    """Return the items of `folder/Relative_Depth/val-*.parquet`, each with the output of the markers tool."""
    items, labels = [], ("A", "B")
    for row in blink_rows(folder, "Relative_Depth"):
        pixels = decode(row["image_1"]["bytes"], row["idx"])
        needs = {"markers": (marks_on(pixels, labels=labels, kind="point"),)}
        items.append(Item(Request((pixels,), DepthArgs(labels=labels), needs), row["answer"][1]))
    return items


def on_objects(number: int, seed: int) -> list[Item]:
    """Return items about the middles of two solids whose depths differ by more than a factor of `APART`.

    The middles are those of the visible parts; the true answer follows from the rendered depth.
    """
    rng, items = generator("evaluate", 13, seed), list[Item]()
    while len(items) < number:
        view = render(random_scene(rng, 9), random_camera(rng, 500, 375), rng)
        middles = [result for solid in range(9) if (result := _middle(view.ids == FIRST_SOLID + solid)) is not None]
        pairs = [
            (first, second)
            for first, second in itertools.permutations(middles, 2)
            if view.depth_m[second[1], second[0]] / view.depth_m[first[1], first[0]] > APART
        ]
        if pairs:
            near, far = pairs[int(rng.integers(len(pairs)))]
            items.append(_item(len(items), view.rgb, near, far))
    return items


def _middle(mask: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """Return the pixel (x, y) of a mask that is nearest to its mean; None if the mask has fewer than 400 pixels."""
    rows, columns = np.nonzero(mask)
    if rows.size < 400:
        return None
    best = int(np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2))
    return int(columns[best]), int(rows[best])


def _item(place: int, image: Pixels, near: tuple[int, int], far: tuple[int, int]) -> Item:
    """Return an item for a pair of points; in every second item, the nearer point is A."""
    nearer, farther = "AB"[place % 2], "BA"[place % 2]
    places = {nearer: near, farther: far}
    points = tuple(PointArg(x=places[label][0], y=places[label][1], label=label) for label in "AB")
    return Item(Request((image,), DepthArgs(points=points)), nearer)


def measured(folder: Path, count: int, seed: int) -> list[Item]:
    """Return `count` pairs of pixels for every photograph in the folder, half of them on one row."""
    rng, items = np.random.default_rng((seed, 14)), list[Item]()
    for photo in sorted((folder / "rgb").iterdir()):
        image = decode(photo.read_bytes(), photo.name)
        depth = cv2.imread(str(folder / "depth" / f"{photo.stem}.png"), cv2.IMREAD_UNCHANGED)
        if depth is None or depth.shape != image.shape[:2]:
            raise SystemExit(f"no depth in the size of {photo.name}")
        levels = np.asarray(depth, np.uint16)
        expected_values = np.argwhere(levels > 0)
        for index in range(count):
            near, far = _apart(rng, levels, expected_values, same_row=index % 2 == 0)
            items.append(_item(len(items), image, near, far))
    return items


def _apart(
    rng: np.random.Generator, depth: npt.NDArray[np.uint16], expected: npt.NDArray[np.intp], *, same_row: bool
) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return two random pixels (x, y), nearer first, of known depths that differ by more than a factor of `APART`."""
    while True:
        first, second = expected[rng.integers(len(expected), size=2)]
        if same_row:
            row_mates = expected[expected[:, 0] == first[0]]
            second = row_mates[int(rng.integers(len(row_mates)))]
        near, far = sorted((first, second), key=lambda place: int(depth[tuple(place)]))
        if depth[tuple(far)] / depth[tuple(near)] > APART:
            return (int(near[1]), int(near[0])), (int(far[1]), int(far[0]))


def judge(item: Item, evidence: Evidence) -> Answer:
    """Compare the tool output with the letter of the item."""
    nearer, rows = evidence.data["nearer"], evidence.data["rows_differ_px"]
    same_row = isinstance(rows, (int, float)) and rows <= SAME_ROW * item.request.images[0].shape[0]
    return Answer(0.5 if nearer is None else float(nearer == item.nearer), evidence.confidence, same_row)


def report(items: Sequence[Item], backend: Backend[DepthArgs], *, halves: bool) -> list[dict[str, Json]]:
    """Print the accuracy by row and confidence, and the accuracies of two halves of the items."""
    started = time.perf_counter()
    answers = [judge(item, backend.run([item.request])[0]) for item in items]
    print(f"{1000 * (time.perf_counter() - started) / len(items):.0f} ms an item; undecided items count one half")
    groups = [
        ("all", answers),
        *([("every other item", answers[::2]), ("the other half", answers[1::2])] if halves else []),
        ("same row", [answer for answer in answers if answer.same_row]),
        ("other rows", [answer for answer in answers if not answer.same_row]),
        *(
            (f"confidence {low:.2f}-{high:.2f}", [answer for answer in answers if low <= answer.confidence < high])
            for low, high in itertools.pairwise((*CURVE, 1.01))
        ),
    ]
    rows = [line(title, group) for title, group in groups if group]
    print(f"  reliability: {bins((answer.confidence, answer.score) for answer in answers if answer.score != 0.5)}")
    return rows


def line(title: str, answers: Sequence[Answer]) -> dict[str, Json]:
    """Print the accuracy of a group of answers, the number of undecided ones, and the mean confidence."""
    scores = np.array([answer.score for answer in answers])
    undecided = int((scores == 0.5).sum())
    mean = float(np.mean([answer.confidence for answer in answers]))
    accuracy, n = float(scores.mean()), len(answers)
    print(f"  {title:22s} {accuracy:.3f} of {n:3d}, undecided {undecided:2d}, mean confidence {mean:.2f}")
    return {"title": title, "accuracy": accuracy, "n": n, "undecided": undecided, "confidence": mean}


def differences(items: Sequence[Item]) -> list[Difference]:
    """Return the cues of every item on which both marks are found, signed so that positive is right."""
    results = []
    for item in items:
        spots = {spot.label: spot for spot in spots_of(item.request)}
        if not {"A", "B"} <= set(spots):
            continue
        near, far = spots[item.nearer], spots["B" if item.nearer == "A" else "A"]
        maps, size = measure(clean_image(item.request)), item.request.images[0].shape[:2]
        results.append(_difference(maps, (near.x, near.y), (far.x, far.y), size))
    return results


def _difference(
    maps: CueMaps, near: tuple[float, float], far: tuple[float, float], size: tuple[int, int], scene: int = 0
) -> Difference:
    above, below = maps.at(*near, size), maps.at(*far, size)
    same = abs(near[1] - far[1]) <= SAME_ROW * size[0]
    return Difference({name: above[name] - below[name] for name in above}, same, scene)


def cue_table(differences: Sequence[Difference]) -> None:
    """Print the accuracy of each cue alone, with the sign and scale that the tool uses; ties count one half."""
    print("cue alone: all / same row / other rows")
    for name in WEIGHTS:
        shares = []
        for rows in ((True, False), (True,), (False,)):
            values = np.array([difference.cues[name] for difference in differences if difference.same_row in rows])
            shares.append(float(((values > 0) + 0.5 * (values == 0)).mean()) if values.size else float("nan"))
        print(f"  {name:9s} {' / '.join(f'{share:.3f}' for share in shares)}")


def varied(rng: np.random.Generator) -> tuple[Pixels, npt.NDArray[np.float32]]:
    """Render a scene and its depth (H, W), m: with a wall or haze, raised things, depth of field, and JPEG."""
    plain = random_scene(rng, 8)
    solids = tuple(
        replace(solid, centre=(solid.centre[0], solid.centre[1], solid.centre[2] + float(rng.uniform(0.4, 1.6))))
        if rng.random() < RAISED
        else solid
        for solid in plain.solids
    )
    haze_m = NO_HAZE_M if plain.wall is not None else float(np.exp(rng.uniform(*np.log(HAZE_M))))
    width, height = SIZES[int(rng.integers(len(SIZES)))]
    focal = width / 2 / np.tan(np.deg2rad(rng.uniform(40, 70)) / 2)
    pitch = float(np.deg2rad(rng.uniform(-4, 22)))
    camera = Camera((0.0, 0.0, float(rng.uniform(0.6, 2.2))), 0.0, pitch, float(focal), width, height)
    view = render(replace(plain, solids=solids, haze_m=haze_m), camera, rng)
    rgb = view.rgb if rng.random() < 0.5 else defocused(rng, view.rgb, view.depth_m)
    return compressed(int(rng.integers(60, 97)))(rgb), view.depth_m


def defocused(rng: np.random.Generator, rgb: Pixels, depth_m: npt.NDArray[np.float32]) -> Pixels:
    """Blur the image by the distance of its inverse depth from the focus, as a thin lens does."""
    inverse = 1 / np.minimum(depth_m, 1e4)
    offset = np.abs(inverse - np.quantile(inverse, rng.uniform(0.3, 0.98))) * rng.uniform(2, 16)
    blurred = [rgb, *(cv2.GaussianBlur(rgb, (0, 0), sigma) for sigma in (0.7, 1.4, 2.8, 5.6))]
    # Removes islands of single pixels.
    level = cv2.medianBlur(np.digitize(offset, (0.35, 1.0, 2.0, 4.0)).astype(np.uint8), 5)
    return np.asarray(np.choose(level[..., None], blurred), np.uint8)


def candidates(pixels: Pixels) -> CueMaps:
    """Return the candidate cue maps, including the tool's own; larger should mean nearer."""
    work = shrink(pixels, WORK_PX)
    lab = np.asarray(cv2.cvtColor(work.astype(np.float32) / 255, cv2.COLOR_RGB2LAB), np.float32)
    saturation = np.asarray(cv2.cvtColor(work, cv2.COLOR_RGB2HSV)[..., 1], np.float32)
    light, mean = lab[..., 0], blurred(lab[..., 0], 12.0)
    fine, coarse = (blurred(np.abs(light - blurred(light, sigma)), 12.0) for sigma in (1.0, 6.0))
    rows, columns = np.mgrid[: work.shape[0], : work.shape[1]].astype(np.float32)
    payload = {
        "contrast": (np.sqrt(np.maximum(blurred(light * light, 12.0) - mean * mean, 0)), 1e-4),
        "warm": (blurred(lab[..., 2], 30.0), 1.0),
        "saturated": (blurred(saturation, 20.0), 2.0),
        "dark": (-blurred(light, 20.0), 0.2),
        "fine": (fine, 0.01),
        "in focus": (fine / (coarse + 0.3), 0.002),
        "middle": (-np.hypot(columns / work.shape[1] - 0.5, rows / work.shape[0] - 0.5), 1e-4),
    }
    others = {name: ranks(values, pixels.shape[:2], step) for name, (values, step) in payload.items()}
    return CueMaps({**measure(pixels).cues, **others})


def draw_pairs(number: int, seed: int) -> list[Difference]:
    """Draw up to six pairs of points from each of `number` scenes, half of them on one row, with the scene's index."""
    results = []
    for index in range(number):
        rng = generator("fit", 16, seed, index)
        pixels, depth_m = varied(rng)
        maps, size = candidates(pixels), pixels.shape[:2]
        levels = np.where(np.isfinite(depth_m), depth_m * 1000, 0).clip(0, 65535).astype(np.uint16)
        expected_values = np.argwhere(steady(depth_m))
        for pair in range(6 if len(expected_values) > 1000 else 0):
            near, far = _apart(rng, levels, expected_values, same_row=pair % 2 == 0)
            results.append(_difference(maps, near, far, size, index))
    return results


def choose(pairs: Sequence[Difference]) -> None:
    """Print the out-of-fold log loss, by scene, of position with up to two more cues, and their weights, best first."""
    names = [name for name in pairs[0].cues if name != "position"]
    values = {name: np.array([pair.cues[name] for pair in pairs]) for name in ("position", *names)}
    folds = np.array([pair.scene % FOLDS for pair in pairs])
    tried = []
    for more in range(3):
        for combination in itertools.combinations(names, more):
            cues = np.stack([values[name] for name in ("position", *combination)], axis=1)
            losses = np.empty(len(pairs))
            for fold in range(FOLDS):
                stored = folds == fold
                losses[stored] = np.logaddexp(0, -cues[stored] @ fitted(cues[~stored]))
            tried.append((float(losses.mean()), combination, fitted(cues)))
    for loss, selected, weights in sorted(tried, key=lambda item: item[0])[:12] + tried[:1]:
        print(f"  log loss {loss:.4f}: position {', '.join(selected)}: {np.round(weights, 2)}")


def fitted(cues: npt.NDArray[np.float64], ridge: float = 1e-3) -> npt.NDArray[np.float64]:
    """Return the weights (cues,) of a logistic regression without a constant; all rows (pairs, cues) are positive."""
    weights = np.zeros(cues.shape[1])
    for _ in range(30):
        wrong = 1 / (1 + np.exp(cues @ weights))
        slope = cues.T @ wrong / len(cues) - ridge * weights
        curve = (cues.T * (wrong * (1 - wrong))) @ cues / len(cues) + ridge * np.eye(len(weights))
        weights = weights + np.linalg.solve(curve, slope)
    return weights


def run(title: str, items: Sequence[Item], other_options: argparse.Namespace) -> list[dict[str, Json]]:
    """Print the tables of one set of items."""
    total = sum({"A", "B"} <= {spot.label for spot in spots_of(item.request)} for item in items)
    print(f"{title}: {len(items)} items, both points known on {total}")
    card = TOOL.backend("learned" if other_options.weights else "classical")
    if card is None:
        raise SystemExit("the depth tool lacks this backend")
    backend = card.make()
    backend.setup(other_options.device, other_options.weights)
    rows = report(items, backend, halves=title == "BLINK")
    if not other_options.weights and title == "BLINK":
        cue_table(differences(items))
    return rows


def main() -> None:
    """Print the requested tables."""
    flags = {"--data": Path, "--objects": 0, "--measured": Path, "--pairs": 200}
    arguments = options(
        __doc__, {**flags, "--seed": 0, "--fit": 0, "--weights": str, "--device": "cpu", "--json": Path}
    )
    cv2.setNumThreads(1)
    tables = dict[str, list[dict[str, Json]]]()
    if arguments.fit:
        choose(draw_pairs(arguments.fit, arguments.seed))
    if arguments.data is not None:
        tables["BLINK"] = run("BLINK", read_items(arguments.data), arguments)
    if arguments.objects:
        tables["objects"] = run("objects", on_objects(arguments.objects, arguments.seed), arguments)
    if arguments.measured is not None:
        tables["measured"] = run("measured", measured(arguments.measured, arguments.pairs, arguments.seed), arguments)
    write_json(arguments.json, tables)


if __name__ == "__main__":
    main()
