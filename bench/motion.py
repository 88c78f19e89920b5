"""Measure the motion tool on generated orbits: left or right, by how far the camera went.

    python -m bench.motion [--pairs 40] [--seed 1000]
    python -m bench.motion --weights DIR_OR_ID [--device cuda]     the learned backend

A camera looks at a textured ball or panel amid solids before a wall; its focal length is 0.8 to 1.5 times the width;
distance and height change between the views. "Unsure" counts as wrong in the first number. Constants of the tool
were set with seeds below 100.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from hybrid.samples.layouts import backdrop, random_solid, random_texture
from hybrid.samples.scenes import Ball, Block, Camera, Scene, Solid, orbit, render
from hybrid.samples.seeds import generator
from hybrid.tool import Evidence, Pixels, Request
from tools.motion import TOOL, MotionArgs

TURNS_DEG = ((5, 15), (15, 30), (30, 50))
SIZE = (640, 480)


@dataclass(frozen=True)
class Pair:
    """Two views, the side that the camera went to, and how far it turned, degrees."""

    images: tuple[Pixels, Pixels]
    side: str
    turn_deg: float


def pair(rng: np.random.Generator, low: float, high: float) -> Pair:
    """Two views of one scene, `low` to `high` degrees of orbit apart."""
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


def report(title: str, cases: Sequence[tuple[Pair, Evidence]], seconds: float) -> None:
    """Print right, unsure and wrong, the error of the turn, and how far confidence can be believed."""
    verdicts = [(evidence.data["moved"], made.side) for made, evidence in cases]
    right, unsure = sum(said == side for said, side in verdicts), sum(said is None for said, _ in verdicts)
    errors = [
        abs(value - made.turn_deg)
        for made, evidence in cases
        if isinstance(value := evidence.data["turn_deg"], float) and evidence.data["moved"] is not None
    ]
    print(
        f"{title}: right {right}/{len(cases)} = {right / len(cases):.3f}, unsure {unsure}, wrong "
        f"{len(cases) - right - unsure}, turn off by {np.median(errors):.1f} degrees (median), "
        f"{seconds / len(cases):.2f} s a pair"
    )
    for low, high in ((0.0, 0.55), (0.55, 0.8), (0.8, 0.9), (0.9, 0.95), (0.95, 1.01)):
        chosen = [e.data["moved"] == made.side for made, e in cases if e.data["moved"] and low <= e.confidence < high]
        if chosen:
            print(f"  confidence {low:.2f} and more: {sum(chosen)}/{len(chosen)}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=40, help="pairs for each range of turns")
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--weights", help="directory or hub id: measure the learned backend")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    card = TOOL.backend("learned" if options.weights else "classical")
    if card is None:
        raise SystemExit("the motion tool lacks this backend")
    backend = card.make()
    backend.setup(options.device, options.weights)
    for number, (low, high) in enumerate(TURNS_DEG):
        made = [pair(generator("evaluate", options.seed, number, index), low, high) for index in range(options.pairs)]
        started = time.perf_counter()
        cases = [(one, backend.run([Request(one.images, MotionArgs())])[0]) for one in made]
        report(f"{low} to {high} degrees", cases, time.perf_counter() - started)


if __name__ == "__main__":
    main()
