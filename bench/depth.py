"""Measure the depth tool: BLINK items, generated scenes, objects of generated scenes, photographs with measured depth.

    python -m bench.depth --data DIR           DIR has BLINK's layout (`DIR/Relative_Depth/val-*.parquet`)
    python -m bench.depth --generated 200      BLINK's kind of points on rendered scenes
    python -m bench.depth --objects 200        the middles of two objects of a rendered scene, as a model would ask
    python -m bench.depth --measured DIR       `DIR/rgb/NAME.*` and `DIR/depth/NAME.png` (16 bits, 0 unknown)
    python -m bench.depth --data DIR --weights DIR_OR_ID [--device cuda]     the learned backend

An undecided item counts one half. On BLINK items and generated ones points come from the markers tool, as in a run.
With `--data` and no weights follow what each cue scores alone and two nested cross-validations: cues, or cues and both
slopes, are chosen by log loss on nine tenths of the items, ten times over, and judged on the last tenth. Our results on
BLINK count the first. `--measured` takes pairs of random pixels whose depths differ by a quarter or more, half of them
on one row; the demonstration data of Metric3D (three frames of KITTI with lidar, three of NYU Depth v2) has this layout
once both files of a pair have one name.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt

from bench._accuracy import bins, blink_rows, marks_on
from bench._frame import options, write_json
from hybrid.benchmarks.blink.sample import row
from hybrid.images import decode
from hybrid.samples.layouts import random_camera, random_scene
from hybrid.samples.scenes import FIRST_SOLID, render
from hybrid.samples.seeds import generator
from hybrid.tool import Backend, Evidence, Pixels, Request
from tools._shared.args import PointArg
from tools.depth import MAX_CERTAINTY, SAME_ROW, SAME_ROW_CONFIDENCE, TOOL, DepthArgs, clean_image, spots_of
from tools.depth.cues import APPEARANCE, APPEARANCE_SLOPE, POSITION_SLOPE, measure

Item = tuple[str, Pixels, str]
"""Id, image with its marks, letter of the nearer point."""
Case = Request[DepthArgs]

APART = 1.25
"""The farther of two points is at least this many times as far."""
CURVE = (0.0, 0.55, 0.65, 0.8)
"""Where the rows by confidence begin: about 15 items each."""
SLOPES = tuple(itertools.product((3.0, 5.0, 7.0), (0.5, 1.0, 2.0, 4.0)))
"""Slopes of position and of appearance that the nested choice is between."""
CUE_SETS: tuple[tuple[str, ...], ...] = ((), ("contrast",), ("warm",), APPEARANCE)
"""Sets of appearance cues that the nested choice is between."""
FOLDS, REPEATS = 10, 10


@dataclass(frozen=True)
class Answer:
    """The score of an item: 1 right, 0 wrong, 0.5 undecided."""

    score: float
    confidence: float
    same_row: bool


@dataclass(frozen=True)
class DepthRow:
    """One line of a table: accuracy of `n` items, how many were undecided, and the mean confidence."""

    title: str
    accuracy: float
    n: int
    undecided: int
    confidence: float


@dataclass(frozen=True)
class Difference:
    """How far each cue of the nearer point lies above the farther one's, and whether they are on one row."""

    cues: Mapping[str, float]
    same_row: bool


def read_items(folder: Path) -> list[Item]:
    """The items of `folder/Relative_Depth/val-*.parquet`."""
    rows = blink_rows(folder, "Relative_Depth")
    return [(one["idx"], decode(one["image_1"]["bytes"], one["idx"]), one["answer"][1]) for one in rows]


def generated(number: int, seed: int) -> list[Item]:
    """Rendered scenes with known depth and marks drawn as BLINK draws them."""
    made = (row("Relative_Depth", index, seed) for index in range(number))
    return [(entry.idx, decode(entry.images[0], entry.idx), entry.answer[1]) for entry in made]


def with_marks(items: Sequence[Item]) -> list[Case]:
    """Each image as a request with what the markers tool finds on it."""
    labels = ("A", "B")
    return [
        Request((pixels,), DepthArgs(labels=labels), {"markers": (marks_on(pixels, labels=labels, kind="point"),)})
        for _, pixels, _ in items
    ]


def on_objects(number: int, seed: int) -> tuple[list[Item], list[Case]]:
    """The middles of the visible parts of two solids, at depths `APART`; the truth is the rendered depth there."""
    rng, items, requests = generator("evaluate", 13, seed), list[Item](), list[Case]()
    while len(items) < number:
        view = render(random_scene(rng, 9), random_camera(rng, 500, 375), rng)
        middles = [found for solid in range(9) if (found := _middle(view.ids == FIRST_SOLID + solid)) is not None]
        pairs = [
            (first, second)
            for first, second in itertools.permutations(middles, 2)
            if view.depth_m[second[1], second[0]] / view.depth_m[first[1], first[0]] > APART
        ]
        if pairs:
            near, far = pairs[int(rng.integers(len(pairs)))]
            _add(items, requests, f"objects_{len(items)}", view.rgb, near, far)
    return items, requests


def _middle(mask: npt.NDArray[np.bool_]) -> tuple[int, int] | None:
    """The pixel x, y of a mask that lies nearest to its mean; None where fewer than 400 are seen."""
    rows, columns = np.nonzero(mask)
    if rows.size < 400:
        return None
    best = int(np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2))
    return int(columns[best]), int(rows[best])


def _add(
    items: list[Item], requests: list[Case], name: str, image: Pixels, near: tuple[int, int], far: tuple[int, int]
) -> None:
    """A pair of points with its truth; the nearer one is A in every other item."""
    nearer = "AB"[len(items) % 2]
    places = {nearer: near, "BA"[len(items) % 2]: far}
    points = tuple(PointArg(x=places[label][0], y=places[label][1], label=label) for label in "AB")
    items.append((name, image, nearer))
    requests.append(Request((image,), DepthArgs(points=points)))


def measured(folder: Path, each: int, seed: int) -> tuple[list[Item], list[Case]]:
    """`each` pairs of pixels of every photograph of the folder, half of them on one row."""
    rng, items, requests = np.random.default_rng((seed, 14)), list[Item](), list[Case]()
    for photo in sorted((folder / "rgb").iterdir()):
        image = decode(photo.read_bytes(), photo.name)
        depth = cv2.imread(str(folder / "depth" / f"{photo.stem}.png"), cv2.IMREAD_UNCHANGED)
        if depth is None or depth.shape != image.shape[:2]:
            raise SystemExit(f"no depth in the size of {photo.name}")
        levels = np.asarray(depth, np.uint16)
        known = np.argwhere(levels > 0)
        for index in range(each):
            near, far = _apart(rng, levels, known, same_row=index % 2 == 0)
            _add(items, requests, photo.stem, image, near, far)
    return items, requests


def _apart(
    rng: np.random.Generator, depth: npt.NDArray[np.uint16], known: npt.NDArray[np.intp], *, same_row: bool
) -> tuple[tuple[int, int], tuple[int, int]]:
    """The nearer and the farther of two random known pixels, x and y, at depths `APART`."""
    while True:
        first, second = known[rng.integers(len(known), size=2)]
        if same_row:
            row_mates = known[known[:, 0] == first[0]]
            second = row_mates[int(rng.integers(len(row_mates)))]
        near, far = sorted((first, second), key=lambda place: int(depth[tuple(place)]))
        if depth[tuple(far)] / depth[tuple(near)] > APART:
            return (int(near[1]), int(near[0])), (int(far[1]), int(far[0]))


def judge(item: Item, evidence: Evidence) -> Answer:
    """Compare the evidence with the letter of the item."""
    nearer, rows = evidence.data["nearer"], evidence.data["rows_differ_px"]
    same_row = isinstance(rows, (int, float)) and rows <= SAME_ROW * item[1].shape[0]
    return Answer(0.5 if nearer is None else float(nearer == item[2]), evidence.confidence, same_row)


def report(
    items: Sequence[Item], requests: Sequence[Case], backend: Backend[DepthArgs], *, halves: bool
) -> list[DepthRow]:
    """Accuracy by row and confidence, and of two halves of the items, printed."""
    started = time.perf_counter()
    answers = [judge(item, backend.run([request])[0]) for item, request in zip(items, requests, strict=True)]
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
    rows = [line(title, chosen) for title, chosen in groups if chosen]
    print(f"  reliability: {bins((answer.confidence, answer.score) for answer in answers if answer.score != 0.5)}")
    return rows


def line(title: str, answers: Sequence[Answer]) -> DepthRow:
    """One group of answers, printed."""
    scores = np.array([answer.score for answer in answers])
    undecided = int((scores == 0.5).sum())
    mean = float(np.mean([answer.confidence for answer in answers]))
    made = DepthRow(title, float(scores.mean()), len(answers), undecided, mean)
    print(
        f"  {title:22s} {made.accuracy:.3f} of {made.n:3d}, undecided {undecided:2d}, "
        f"mean confidence {made.confidence:.2f}"
    )
    return made


def differences(items: Sequence[Item], requests: Sequence[Case]) -> list[Difference]:
    """The cues of every item on which both marks are found, turned so that positive is right."""
    found = []
    for item, request in zip(items, requests, strict=True):
        spots = {spot.label: spot for spot in spots_of(request)}
        if not {"A", "B"} <= set(spots):
            continue
        maps, size = measure(clean_image(request)), (item[1].shape[0], item[1].shape[1])
        near, far = spots[item[2]], spots["B" if item[2] == "A" else "A"]
        above, below = maps.at(near.x, near.y, size), maps.at(far.x, far.y, size)
        same = abs(near.y - far.y) <= SAME_ROW * size[0]
        found.append(Difference({name: above[name] - below[name] for name in above}, same))
    return found


def cue_table(differences: Sequence[Difference]) -> None:
    """Print what each cue scores alone, with the sign and scale that the tool fixes."""
    print("cue alone: all / same row / other rows")
    for name in ("position", *APPEARANCE):
        values = [(one.cues[name], one.same_row) for one in differences]
        print(f"  {name:9s} {share(values):.3f} / {share(values, same=True):.3f} / {share(values, same=False):.3f}")


def share(values: Iterable[tuple[float, bool]], *, same: bool | None = None) -> float:
    """Share of positive differences, ties one half, NaN without any."""
    chosen = np.array([value for value, on_row in values if same is None or on_row == same])
    return float(((chosen > 0) + 0.5 * (chosen == 0)).mean()) if chosen.size else float("nan")


def nested(differences: Sequence[Difference], slopes: Sequence[tuple[float, float]], seed: int) -> list[DepthRow]:
    """Accuracy out of fold of the choice among `CUE_SETS` and `slopes`, and its counts by confidence, printed.

    Counts are means over the repeats: what each item gave, once.
    """
    answers, accuracies = list[Answer](), list[float]()
    for repeat in out_of_fold(differences, slopes, seed):
        accuracies.append(float(np.mean([answer.score for answer in repeat])))
        answers += repeat
    what = "cues chosen" if len(slopes) == 1 else "cues and slopes chosen"
    print(
        f"nested {FOLDS}-fold, {REPEATS} times, {what}: {np.mean(accuracies):.3f}, sd over splits "
        f"{np.std(accuracies):.3f}, standard error of {len(differences)} items {math.sqrt(0.16 / len(differences)):.3f}"
    )
    made = [DepthRow(f"nested, {what}", float(np.mean(accuracies)), len(differences), 0, _mean_confidence(answers))]
    for low, high in itertools.pairwise((*CURVE, 1.01)):
        chosen = [answer for answer in answers if low <= answer.confidence < high]
        if chosen:
            right, n = sum(answer.score for answer in chosen) / REPEATS, len(chosen) / REPEATS
            print(f"  confidence {low:.2f}-{high:.2f}: right {right:.1f} of {n:.1f} a repeat")
            made.append(
                DepthRow(f"nested, {what}, {low:.2f}-{high:.2f}", right / n, round(n), 0, _mean_confidence(chosen))
            )
    return made


def out_of_fold(
    differences: Sequence[Difference], slopes: Sequence[tuple[float, float]], seed: int
) -> Iterator[list[Answer]]:
    """Of each repeat the answers by the cues and slopes with the least log loss on the other folds."""
    rivals = [(names, *pair) for names in CUE_SETS for pair in slopes]
    evidence = np.array([[_evidence(one, *rival) for one in differences] for rival in rivals])
    # Log odds of the right answer, so that its log loss is log(1 + exp(-x)).
    losses, rng = np.logaddexp(0.0, -evidence), np.random.default_rng(seed)
    for _ in range(REPEATS):
        folds = rng.permutation(len(differences)) % FOLDS
        held = np.empty(len(differences))
        for fold in range(FOLDS):
            best = int(losses[:, folds != fold].mean(axis=1).argmin())
            held[folds == fold] = evidence[best, folds == fold]
        yield [_judged(float(value), one.same_row) for value, one in zip(held, differences, strict=True)]


def blink_out_of_fold(data: Path, seed: int = 0) -> list[dict[str, Answer]]:
    """Of each repeat by id the answers to BLINK's items, the cues chosen on the other folds, at the tool's slopes."""
    items = read_items(data)
    found = differences(items, with_marks(items))
    repeats = out_of_fold(found, ((POSITION_SLOPE, APPEARANCE_SLOPE),), seed)
    return [{item[0]: answer for item, answer in zip(items, repeat, strict=True)} for repeat in repeats]


def _evidence(one: Difference, names: Sequence[str], position: float, appearance: float) -> float:
    """Log odds of the right answer."""
    looks = [one.cues[name] for name in names]
    return position * one.cues["position"] + (appearance * float(np.mean(looks)) if looks else 0.0)


def _mean_confidence(answers: Sequence[Answer]) -> float:
    return float(np.mean([answer.confidence for answer in answers]))


def _judged(evidence: float, same_row: bool) -> Answer:
    """An answer from log odds of the right point, with the confidence that the tool would give."""
    confidence = 1 / (1 + math.exp(-min(abs(evidence), MAX_CERTAINTY)))
    return Answer(
        float(evidence > 0) if evidence else 0.5,
        min(confidence, SAME_ROW_CONFIDENCE) if same_row else confidence,
        same_row,
    )


def run(title: str, items: Sequence[Item], requests: Sequence[Case], given: argparse.Namespace) -> list[DepthRow]:
    """Print the tables of one set of items."""
    found = sum({"A", "B"} <= {spot.label for spot in spots_of(request)} for request in requests)
    print(f"{title}: {len(items)} items, both points known on {found}")
    card = TOOL.backend("learned" if given.weights else "classical")
    if card is None:
        raise SystemExit("the depth tool lacks this backend")
    backend = card.make()
    backend.setup(given.device, given.weights)
    rows = report(items, requests, backend, halves=title == "BLINK")
    if given.weights or title != "BLINK":
        return rows
    compared = differences(items, requests)
    cue_table(compared)
    fixed = nested(compared, ((POSITION_SLOPE, APPEARANCE_SLOPE),), given.seed)
    return [*rows, *fixed, *nested(compared, SLOPES, given.seed)]


def main() -> None:
    """Print the tables that were asked for."""
    flags = {"--data": Path, "--generated": 0, "--objects": 0, "--measured": Path, "--pairs": 200, "--seed": 0}
    given = options(__doc__, {**flags, "--weights": str, "--device": "cpu", "--json": Path})
    cv2.setNumThreads(1)
    tables = dict[str, list[DepthRow]]()
    if given.data is not None:
        items = read_items(given.data)
        tables["BLINK"] = run("BLINK", items, with_marks(items), given)
    if given.generated:
        items = generated(given.generated, given.seed)
        tables["generated"] = run("generated", items, with_marks(items), given)
    if given.objects:
        tables["objects"] = run("objects", *on_objects(given.objects, given.seed), given)
    if given.measured is not None:
        made = measured(given.measured, given.pairs, given.seed)
        tables["measured"] = run("measured", *made, given)
    write_json(given.json, tables)


if __name__ == "__main__":
    main()
