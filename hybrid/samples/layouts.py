"""Random arrangements for the ray caster: scenes, cameras, and named objects that do not hide each other.

Run: `scene = random_scene(np.random.default_rng(0))`, then `hybrid.samples.scenes.render`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hybrid.samples.scenes import Ball, Camera, Scene, SceneBlock, Solid, Wall
from hybrid.samples.textures import NAMED_COLOURS, PATTERNS, Pattern, Texture, earthy, plain, texture

# x0, y0, x1, y1 in pixels, x1 and y1 exclusive.
Rect = tuple[float, float, float, float]
Range = tuple[float, float]

# The shapes that a question may name.
SHAPES = ("cube", "ball")


@dataclass(frozen=True)
class Name:
    """The name of an object in questions, such as "red cube"."""

    colour: str
    shape: str

    def __str__(self) -> str:
        return f"{self.colour} {self.shape}"


def random_texture(rng: np.random.Generator, texels_per_m: float = 110.0) -> Texture:
    """Make a muted texture with one of the structured patterns."""
    pattern: Pattern = PATTERNS[int(rng.integers(len(PATTERNS)))]
    return texture(rng, pattern, earthy(rng), texels_per_m=texels_per_m, side=128)


def backdrop(rng: np.random.Generator, solids: Sequence[Solid], wall_m: float | None, *, calm: bool = False) -> Scene:
    """Put solids on textured ground under a random sun.

    Args:
        rng: Source of randomness.
        solids: Solids on the ground.
        wall_m: Distance of the wall in the background, or None for an open sky.
        calm: Grey surfaces with little structure, so that coloured objects are salient.
    """
    if calm:
        grey, light = float(rng.uniform(0.2, 0.5)), float(rng.uniform(0.3, 0.65))
        floor = (grey, grey * 0.97, grey * 0.92)
        ground = texture(rng, "plain", (floor, floor), texels_per_m=36.0, grain=0.12, drift=0.12)
        paint = plain(rng, (light, light, light * 0.97), grain=0.06)
    else:
        pattern: Pattern = PATTERNS[int(rng.integers(len(PATTERNS)))]
        ground = texture(rng, pattern, earthy(rng), texels_per_m=70.0)
        paint = random_texture(rng, 60.0)
    wall = None if wall_m is None else Wall(wall_m, float(rng.uniform(-0.35, 0.35)), paint)
    azimuth, elevation = rng.uniform(-2.4, 2.4), np.deg2rad(rng.uniform(30, 62))
    # At azimuth 0 the sun is behind a camera that looks north, so most visible faces are lit.
    sun = (np.sin(azimuth) * np.cos(elevation), -np.cos(azimuth) * np.cos(elevation), np.sin(elevation))
    clouds = texture(rng, "noise", ((0.25, 0.25, 0.27), (0.85, 0.85, 0.85)), texels_per_m=90, grain=0.02, side=128)
    return Scene(
        ground=ground,
        wall=wall,
        solids=tuple(solids),
        sun=(float(sun[0]), float(sun[1]), float(sun[2])),
        sunlight=float(rng.uniform(0.7, 1.1)),
        ambient=float(rng.uniform(0.35, 0.6)),
        clouds=clouds,
    )


def random_solid(rng: np.random.Generator, x: float, y: float, surface: Texture, size: float) -> Solid:
    """Make a block or a ball on the ground at (x, y); `size` is about half its width in metres."""
    if rng.random() < 0.35:
        return Ball((x, y, size), size, surface)
    half = tuple(float(size * rng.uniform(0.7, 1.3)) for _ in range(2))
    tall = float(size * rng.uniform(0.6, 2.2))
    return SceneBlock((x, y, tall), (half[0], half[1], tall), float(rng.uniform(0, np.pi)), surface)


def random_scene(rng: np.random.Generator, solids: int = 8, wall_m: float | None = None) -> Scene:
    """Make a scene of ground with `solids` textured solids 2 to 10 m north of the origin, with separate footprints.

    Half of the scenes have a wall in the background and half an open sky, unless `wall_m` gives the wall's distance.
    """
    distance = wall_m if wall_m is not None else float(rng.uniform(8, 14)) if rng.random() < 0.5 else None
    occupied: list[tuple[float, float, float]] = []
    placed: list[Solid] = []
    for _ in range(40 * solids):
        size, y = float(rng.uniform(0.22, 0.6)), float(rng.uniform(2.2, 10.0))
        x = float(rng.uniform(-0.75, 0.75) * y)
        if len(placed) == solids:
            break
        if any(np.hypot(x - a, y - b) < 1.9 * (size + c) for a, b, c in occupied):
            continue
        occupied.append((x, y, size))
        placed.append(random_solid(rng, x, y, random_texture(rng), size))
    return backdrop(rng, placed, distance)


def random_camera(rng: np.random.Generator, width: int, height: int) -> Camera:
    """Make a hand-held camera at the origin: 0.9 to 1.8 m up, looking slightly down, 45 to 65 degrees wide."""
    return _camera(rng, width, height, (45, 65), (6, 18), (0.9, 1.8))


def _camera(rng: np.random.Generator, width: int, height: int, wide_deg: Range, down_deg: Range, up_m: Range) -> Camera:
    focal = width / 2 / np.tan(np.deg2rad(rng.uniform(*wide_deg)) / 2)
    pitch = float(np.deg2rad(rng.uniform(*down_deg)))
    return Camera((0.0, 0.0, float(rng.uniform(*up_m))), 0.0, pitch, float(focal), width, height)


def named_solid(rng: np.random.Generator, name: Name, x: float, y: float, size: float, base_m: float = 0.0) -> Solid:
    """Make a solid of a nameable colour and shape; `size` is half its height, `base_m` the height of its base."""
    surface = plain(rng, NAMED_COLOURS[name.colour], grain=0.07)
    if name.shape == "ball":
        return Ball((x, y, base_m + size), size, surface)
    return SceneBlock((x, y, base_m + size), (size, size, size), float(rng.uniform(0.15, np.pi / 2 - 0.15)), surface)


def random_names(rng: np.random.Generator, count: int) -> tuple[Name, ...]:
    """Return random names with different colours; at most as many as there are colours."""
    colours = rng.permutation(list(NAMED_COLOURS))[:count]
    return tuple(Name(str(colour), SHAPES[int(rng.integers(len(SHAPES)))]) for colour in colours)


def high_camera(rng: np.random.Generator, width: int, height: int) -> Camera:
    """Make a camera at the origin that looks down at the ground 2 to 7 m north, so that objects appear separate."""
    return _camera(rng, width, height, (50, 60), (24, 32), (2.1, 2.8))


def rectangle(camera: Camera, solid: Solid) -> Rect:
    """Return a rectangle that surely contains the solid's image, computed from the corners of the solid's box."""
    projected = camera.project(solid.corners())
    low, high = projected[:, :2].min(axis=0), projected[:, :2].max(axis=0)
    return float(low[0]), float(low[1]), float(high[0]), float(high[1])


def fits(camera: Camera, rect: Rect, others: Sequence[Rect], margin: float = 6.0) -> bool:
    """Return whether a rectangle is inside the picture and separate from the others, by `margin` pixels."""
    x0, y0, x1, y1 = rect
    if x0 < margin or y0 < margin or x1 > camera.width - margin or y1 > camera.height - margin:
        return False
    return apart(rect, others, margin)


def apart(rect: Rect, others: Iterable[Rect], margin: float) -> bool:
    """Return whether a rectangle is at least `margin` pixels away, along x or y, from each of the others."""
    x0, y0, x1, y1 = rect
    return all(x1 + margin <= a or c + margin <= x0 or y1 + margin <= b or d + margin <= y0 for a, b, c, d in others)


def arrange(
    rng: np.random.Generator,
    camera: Camera,
    names: Sequence[Name],
    occupied: Sequence[Solid] = (),
    sizes_m: tuple[float, float] = (0.16, 0.3),
) -> tuple[Solid, ...] | None:
    """Arrange named solids on the ground, fully visible, apart from each other and from `occupied`.

    Return None if there is not enough space.

    `sizes_m` is the range of half an object's height.
    """
    solids: list[Solid] = []
    rects = [rectangle(camera, solid) for solid in occupied]
    for name in names:
        for _ in range(60):
            y = float(rng.uniform(2.4, 7.0))
            x = float(rng.uniform(-0.6, 0.6) * y * camera.width / camera.focal_px)
            solid = named_solid(rng, name, x, y, float(rng.uniform(*sizes_m)))
            rect = rectangle(camera, solid)
            if fits(camera, rect, rects):
                solids.append(solid)
                rects.append(rect)
                break
        else:
            return None
    return tuple(solids)
