"""Measure the motion tool on pairs with known cameras, backends side by side.

    python -m bench.motion [--pairs 30] [--seed 1000] [--set parallax-extreme]... [--photos DIR] [--json FILE]
    python -m bench.motion --backend classical learned [--weights DIR_OR_ID] [--matches DIR]

`parallax` and `straight` pairs are photographs (`--photos`; rendered scenes without) with a plausible depth, seen by a
second camera to the left or right, or forward, backward, up or down, in another light, blurred and noisy:
`bench/warped_pairs.py`. `orbit` pairs are rendered: a camera goes by so many degrees round a textured ball or panel
amid solids before a wall. On `straight` pairs the direction counts, else the side; "unsure" counts as not right.
Constants of the tool were set with `--fit` on the `second` half of the photographs: report the `first`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.pair_bench import (
    SETS,
    Matcher,
    Options,
    bins_line,
    by_confidence,
    counted,
    pairs_of,
    parse,
    side_by_side,
    write_json,
)
from hybrid.samples.layouts import backdrop, random_solid, random_texture
from hybrid.samples.scenes import Ball, Block, Camera, Scene, Solid, orbit, render
from hybrid.samples.seeds import generator
from hybrid.stats import wilson
from hybrid.tool import Evidence, Pixels, Request
from hybrid.types import Json
from tools.motion import TOOL, MotionArgs, solve, views_of

ORBITS_DEG: Mapping[str, tuple[int, int]] = {"orbit-5-15": (5, 15), "orbit-15-30": (15, 30), "orbit-30-50": (30, 50)}
HARD = tuple(one.name for one in SETS if one.kind != "planar")
SIZE = (640, 480)


@dataclass(frozen=True)
class Pair:
    """Two views, the direction that the camera mostly went in, and how far it turned, degrees."""

    images: tuple[Pixels, Pixels]
    direction: str
    turn_deg: float


@dataclass(frozen=True)
class Answer:
    """What a backend said of one pair: whether it is right (None: unsure), and its confidence 0..1.

    `turn_off_deg` is by how much its turn is off, `seconds` what the matching took.
    """

    right: bool | None
    confidence: float
    turn_off_deg: float
    seconds: float


def pairs(options: Options, name: str) -> Iterator[Pair]:
    """The pairs of a set."""
    if name in ORBITS_DEG:
        place = list(ORBITS_DEG).index(name)
        for index in range(options.pairs):
            yield _orbit(generator(options.purpose, options.seed, 100 + place, index), *ORBITS_DEG[name])
        return
    for pair, _ in pairs_of(options, name):
        yield Pair(pair.images, pair.direction or "", pair.turn_deg)


def _orbit(rng: np.random.Generator, low: float, high: float) -> Pair:
    """Two rendered views of one scene, `low` to `high` degrees of orbit apart."""
    scene, turn, side = around(rng), float(rng.uniform(low, high)), str(rng.choice(["left", "right"]))
    lens = (float(rng.uniform(0.8, 1.5)) * SIZE[0], *SIZE)
    start = float(rng.uniform(-0.4, 0.4))
    end = start + np.deg2rad(turn) * (1 if side == "right" else -1)
    views = [render(scene, camera(rng, azimuth, lens), rng).rgb for azimuth in (start, end)]
    return Pair((views[0], views[1]), side, turn)


def camera(rng: np.random.Generator, azimuth: float, lens: tuple[float, int, int]) -> Camera:
    """A camera on the orbit at a random distance and height."""
    return orbit((0.0, 0.0, 0.45), float(rng.uniform(3.5, 4.5)), azimuth, float(rng.uniform(0.8, 1.7)), lens)


def around(rng: np.random.Generator) -> Scene:
    """A ball or an upright panel at the origin, solids beside and behind it, a wall behind all.

    No cube: its four sides carry one texture, so that a turn by 40 degrees looks like one by 50 the other way.
    """
    half, surface = float(rng.uniform(0.4, 0.65)), random_texture(rng, 140.0)
    panel = Block((0.0, 0.0, half), (half, 0.08, half), float(rng.uniform(-0.5, 0.5)), surface)
    solids: list[Solid] = [panel if rng.random() < 0.5 else Ball((0.0, 0.0, half), half, surface)]
    for _ in range(12):
        x, y = float(rng.uniform(-3, 3)), float(rng.uniform(-0.5, 3.2))
        if len(solids) < 6 and all(np.hypot(x - one.centre[0], y - one.centre[1]) > 1.1 for one in solids):
            solids.append(random_solid(rng, x, y, random_texture(rng, 130.0), float(rng.uniform(0.2, 0.45))))
    return backdrop(rng, solids, float(rng.uniform(4.0, 6.5)))


def answer(options: Options, matcher: Matcher, pair: Pair) -> Answer:
    """What the tool says to a pair with the matches of a matcher."""
    request = Request(pair.images, MotionArgs())
    views = views_of(request)
    found = options.store.match(matcher, views)
    evidence = solve(request, views, found.matches)
    turn = evidence.data["turn_deg"]
    off = abs(turn - pair.turn_deg) if isinstance(turn, float) else np.inf
    said, confidence = said_of(evidence, sideways=pair.direction in ("left", "right"))
    return Answer(None if said is None else said == pair.direction, confidence, off, found.seconds)


def said_of(evidence: Evidence, *, sideways: bool) -> tuple[str | None, float]:
    """The side and its confidence; else the first direction that the camera mainly went in."""
    if sideways:
        moved = evidence.data["moved"]
        return (moved if isinstance(moved, str) else None), evidence.confidence
    mainly = evidence.data["mainly"]
    first = mainly[0] if isinstance(mainly, list) and mainly else None
    if not isinstance(first, dict):
        return None, 0.5
    return str(first["direction"]), float(str(first["confidence"]))


def row_of(name: str, matcher: Matcher, answers: Sequence[Answer]) -> dict[str, Json]:
    """The numbers of a set."""
    right, n = sum(bool(one.right) for one in answers), len(answers)
    around_ = wilson(right, n)
    unsure = sum(one.right is None for one in answers)
    return {
        "set": name,
        "backend": matcher.name,
        "version": matcher.version,
        "n": n,
        "right": right,
        "unsure": unsure,
        "wrong": n - right - unsure,
        "interval": None if around_ is None else [around_.low, around_.high],
        "turn_off_deg": turn_off(answers),
        "seconds": float(np.mean([one.seconds for one in answers])),
    }


def turn_off(answers: Sequence[Answer]) -> float | None:
    """Median error of the turn over the answers that are not unsure, degrees."""
    sure = [one.turn_off_deg for one in answers if one.right is not None]
    return float(np.median(sure)) if sure else None


def report(name: str, matcher: Matcher, answers: Sequence[Answer]) -> None:
    """Print one set of one backend."""
    right, n, unsure = sum(bool(one.right) for one in answers), len(answers), sum(one.right is None for one in answers)
    off, seconds = turn_off(answers), float(np.mean([one.seconds for one in answers]))
    turn = "-" if off is None else f"{off:.1f}"
    print(
        f"{name:17s} {matcher.name:9s} right {counted(right, n)}, unsure {unsure}, wrong {n - right - unsure}, "
        f"turn off by {turn} degrees (median), {seconds:.2f} s a pair",
        flush=True,
    )


def main() -> None:
    """Print the tables that were asked for."""
    options = parse(__doc__, TOOL, (*HARD, *ORBITS_DEG), HARD)
    said: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    rows: list[dict[str, Json]] = []
    for name, matcher, answers in side_by_side(options, pairs, answer):
        report(name, matcher, answers)
        rows.append(row_of(name, matcher, answers))
        asked = "directions" if name.startswith("straight") else "sides"
        decided = [(one.confidence, one.right) for one in answers if one.right is not None]
        said.setdefault((matcher.name, asked), []).extend(decided)
    for (backend, asked), decided in said.items():
        print(f"{backend}, {asked} by confidence: {bins_line(decided)}")
        bins: list[Json] = [list(one) for one in by_confidence(decided)]
        rows.append({"backend": backend, "asked": asked, "bins": bins})
    write_json(options.json, rows)


if __name__ == "__main__":
    main()
