"""Measure the motion tool on pairs with known cameras, backends side by side.

    python -m bench.motion [--pairs 30] [--seed 1000] [--set parallax-extreme]... [--photos DIR] [--json FILE]
    python -m bench.motion --backend classical learned [--weights DIR_OR_ID] [--matches DIR]

`parallax` and `straight` pairs are photographs (`--photos`; otherwise rendered scenes) with a plausible depth, seen by
a second camera to the left or right, or forward, backward, up or down, in another light, blurred and noisy:
`bench/warped_pairs.py`. On `straight` pairs the direction counts, else the side; "unsure" counts as not right. The sets
of `DEGENERATE` (an image twice, mirrored, shifted, ...) determine no direction, so any answer that names one is wrong.
`bench.reliability --task Multi-view_Reasoning` asks about rendered views of one scene. Constants of the tool were set
with `--fit` on the `second` half of the photographs, so report the `first` half.
"""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from bench._accuracy import bins, by_confidence, format_share
from bench._frame import write_json
from bench.light_change import DIFFICULTIES, LIGHTS, relit
from bench.pair_bench import SETS, STRIDE, Judged, Matcher, pairs_of, parse, row_of, side_by_side
from bench.warped_pairs import PLANAR_CHANGES, Array, picture, random_homography, warped_pair
from hybrid.core.types import Json
from hybrid.samples.seeds import generator
from hybrid.tool import Evidence, Pixels, Request
from tools.motion import TOOL, MotionArgs, solve, views_of

HARD = tuple(item.name for item in SETS if item.kind != "planar")
# Confidence thresholds at which a direction for a degenerate pair is counted.
SURE = (0.0, 0.6, 0.9)


@dataclass(frozen=True)
class ViewPair:
    """Two views, the main direction of the camera, and its turn in degrees."""

    images: tuple[Pixels, Pixels]
    direction: str
    turn_deg: float


@dataclass(frozen=True)
class Answer(Judged):
    """The tool's answer: whether it is right (None if unsure), the error of the turn, and the reported degeneracy."""

    turn_off_deg: float
    degeneracy: str | None


def pairs(options: Namespace, name: str) -> Iterator[ViewPair]:
    """Yield the pairs of a set."""
    if name in DEGENERATE:
        yield from _degenerate(options, name)
        return
    for pair, _ in pairs_of(options, name):
        yield ViewPair(pair.images, pair.direction or "", pair.turn_deg)


def _degenerate(options: Namespace, name: str) -> Iterator[ViewPair]:
    """Make pairs whose geometry does not determine the camera's motion; the light changes as in the other sets."""
    place = len(SETS) + list(DEGENERATE).index(name)
    for index in range(options.pairs):
        rng = generator(options.purpose, options.seed, 200 + place, index)
        pixels = picture(options.photos, index * STRIDE + place, rng)
        if name == "unrelated":
            second = picture(options.photos, index * STRIDE + place + STRIDE // 2, rng)
        elif name == "mirrored-view":
            second = np.ascontiguousarray(warped_pair(rng, pixels, "parallax", "easy").images[1][:, ::-1])
        else:
            homography = DEGENERATE[name](rng, pixels.shape[1], pixels.shape[0])
            size = (pixels.shape[1], pixels.shape[0])
            second = np.asarray(cv2.warpPerspective(pixels, homography, size, borderValue=(128, 128, 128)), np.uint8)
        yield ViewPair((pixels, relit(rng, second, LIGHTS[DIFFICULTIES[index % len(DIFFICULTIES)]])), "", 0.0)


def _shift(rng: np.random.Generator, width: int, height: int) -> Array:
    """Return the homography (3, 3) of a shift, along one axis, by 2 to 15 % of the side."""
    moved = np.eye(3)
    moved[:2, 2] = rng.uniform(0.02, 0.15, 2) * rng.choice([-1, 1], 2) * (width, height)
    moved[int(rng.integers(2)), 2] = 0
    return moved


def _zoom(rng: np.random.Generator, width: int, height: int) -> Array:
    """Return the homography (3, 3) of a zoom by 1.1 to 1.8, in or out."""
    factor = float(np.exp(rng.uniform(0.1, 0.6) * rng.choice([-1, 1])))
    centre = np.array([(width - 1) / 2, (height - 1) / 2])
    return np.vstack([np.column_stack([np.eye(2) * factor, centre * (1 - factor)]), [0, 0, 1]])


def _turn(rng: np.random.Generator, width: int, height: int) -> Array:
    """Return the homography (3, 3) of a camera that turns on the spot by 3 to 15 degrees."""
    focal = float(rng.uniform(0.8, 1.4)) * max(width, height)
    lens = np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])
    axis = rng.normal(size=3) * (0.5, 1, 0.3)
    turn = cv2.Rodrigues(np.deg2rad(rng.uniform(3, 15)) * axis / np.linalg.norm(axis))[0]
    return np.asarray(lens @ turn @ np.linalg.inv(lens), np.float64)


DEGENERATE: Mapping[str, Callable[[np.random.Generator, int, int], Array]] = {
    "same": lambda *_: np.eye(3),
    "mirror": lambda _, width, __: np.array([[-1.0, 0, width - 1], [0, 1, 0], [0, 0, 1]]),
    "shift": _shift,
    "zoom": _zoom,
    "turn": _turn,
    "plane": lambda rng, width, height: random_homography(rng, (width, height), PLANAR_CHANGES["medium"]),
    # In these sets the second view is not a warped version of the first.
    **dict.fromkeys(("mirrored-view", "unrelated"), lambda *_: np.eye(3)),
}


def answer(options: Namespace, matcher: Matcher, pair: ViewPair) -> Answer:
    """Return the tool's answer to a pair, using a matcher's matches."""
    request = Request(pair.images, MotionArgs())
    views = views_of(request)
    match = options.store.match(matcher, views)
    evidence = solve(request, views, match.matches)
    turn = evidence.data["turn_deg"]
    off = abs(turn - pair.turn_deg) if isinstance(turn, float) else np.inf
    sideways = pair.direction in ("left", "right") or not (pair.direction or evidence.data["mainly"])
    text, confidence = said_of(evidence, sideways=sideways)
    right = None if text is None else text == pair.direction
    degenerate = evidence.data["degenerate"]
    return Answer(right, confidence, match.seconds, off, degenerate if isinstance(degenerate, str) else None)


def said_of(evidence: Evidence, *, sideways: bool) -> tuple[str | None, float]:
    """Return the side and its confidence; without a side, the camera's first main direction."""
    if sideways:
        moved = evidence.data["moved"]
        return (moved if isinstance(moved, str) else None), evidence.confidence
    mainly = evidence.data["mainly"]
    first = mainly[0] if isinstance(mainly, list) and mainly else None
    if not isinstance(first, dict):
        return None, 0.5
    return str(first["direction"]), float(str(first["confidence"]))


def report(name: str, matcher: Matcher, answers: Sequence[Answer]) -> dict[str, Json]:
    """Print the results of one set and one backend; return the numbers."""
    row = row_of(name, matcher, answers)
    right, n, unsure = (int(str(row[key])) for key in ("right", "n", "undecided"))
    counts = Counter(item.degeneracy for item in answers if item.degeneracy)
    # Errors of the turn, among the answers that name a direction.
    turns = [entry.turn_off_deg for entry in answers if entry.right is not None]
    off = float(np.median(turns)) if turns else None
    if name in DEGENERATE:
        totals = [sum(value.right is not None and value.confidence >= least for value in answers) for least in SURE]
        text = ", ".join(f"{count} with {least} or more" for least, count in zip(SURE, totals, strict=True))
        message = (
            f"of {n} say a direction: {text}; named: {', '.join(f'{reason} {many}' for reason, many in counts.items())}"
        )
    else:
        turn = "-" if off is None else f"{off:.1f}"
        message = f"right {format_share(right, n)}, unsure {unsure}, wrong {n - right - unsure}, "
        message += f"turn off by {turn} degrees (median), {row['seconds']:.2f} s a pair"
    print(f"{name:17s} {matcher.name:9s} {message}", flush=True)
    return {**row, "wrong": n - right - unsure, "named": dict(counts), "turn_off_deg": off}


def main() -> None:
    """Print the requested tables."""
    options = parse(__doc__, TOOL, (*HARD, *DEGENERATE), (*HARD, *DEGENERATE))
    messages: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    rows: list[dict[str, Json]] = []
    for name, matcher, answers in side_by_side(options, pairs, answer):
        rows.append(report(name, matcher, answers))
        text = "degenerate" if name in DEGENERATE else "directions" if name.startswith("straight") else "sides"
        decided = [(item.confidence, item.right) for item in answers if item.right is not None]
        messages.setdefault((matcher.name, text), []).extend(decided)
    for (backend, text), decided in messages.items():
        print(f"{backend}, {text} by confidence: {bins(decided)}")
        values: list[Json] = [[entry.low, entry.right, entry.n] for entry in by_confidence(decided)]
        rows.append({"backend": backend, "asked": text, "bins": values})
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
