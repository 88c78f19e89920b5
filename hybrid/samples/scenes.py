"""A small ray caster: textured ground, wall or sky, blocks and balls, with true depth in metres and object ids.

World: x right (east), y forward (north), z up, metres. Camera: x right, y down, z forward (OpenCV's frame).
Run: `render(scene, camera, np.random.default_rng(0)).rgb`; `hybrid.samples.layouts` makes random scenes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np
import numpy.typing as npt

from hybrid.samples.textures import FloatMap, Texture, sample, thrice
from hybrid.tool import Pixels

Vector = tuple[float, float, float]
Points = npt.NDArray[np.float64]

# Ids in `RenderedView.ids`: solid number k of the scene is `FIRST_SOLID + k`.
SKY, GROUND, WALL, FIRST_SOLID = 0, 1, 2, 3

# Weights of linear red, green and blue (ITU-R BT.709).
LUMINANCE = (0.2126, 0.7152, 0.0722)
# Depths outside this range are not rendered.
NEAR_M, FAR_M = 0.05, 250.0
# The corners of a cube from -1 to 1, (8, 3).
SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], dtype=np.float64)


@dataclass(frozen=True)
class Camera:
    """A pinhole camera; yaw turns to the right (0 looks north), pitch looks down; the principal point is the centre."""

    position: Vector
    yaw_rad: float
    pitch_rad: float
    focal_px: float
    width: int
    height: int

    @property
    def centre_px(self) -> tuple[float, float]:
        """The principal point."""
        return (self.width - 1) / 2, (self.height - 1) / 2

    def rotation(self) -> Points:
        """Return the rotation from world to camera, (3, 3), with the camera's right, down and forward as rows."""
        sin_yaw, cos_yaw = np.sin(self.yaw_rad), np.cos(self.yaw_rad)
        sin_pitch, cos_pitch = np.sin(self.pitch_rad), np.cos(self.pitch_rad)
        forward = np.array([sin_yaw * cos_pitch, cos_yaw * cos_pitch, -sin_pitch])
        right = np.array([cos_yaw, -sin_yaw, 0.0])
        return np.stack([right, np.cross(forward, right), forward])

    def project(self, points: Points) -> Points:
        """Project world points (N, 3) to (N, 3): x and y in pixels, depth along the optical axis in metres."""
        local = (points - np.asarray(self.position)) @ self.rotation().T
        depth = local[:, 2:3]
        pixels = local[:, :2] * (self.focal_px / np.where(np.abs(depth) < 1e-9, 1e-9, depth)) + self.centre_px
        return np.hstack([pixels, depth])

    def unproject(self, x: float, y: float, depth_m: float) -> Points:
        """Return the world point (3,) at a pixel at a depth along the optical axis."""
        centre_x, centre_y = self.centre_px
        local = np.array([(x - centre_x) / self.focal_px, (y - centre_y) / self.focal_px, 1.0]) * depth_m
        return np.asarray(self.rotation().T @ local + np.asarray(self.position))

    def rays(self) -> FloatMap:
        """Return one direction per pixel in world coordinates, (3, H, W), scaled to one metre of depth."""
        centre_x, centre_y = self.centre_px
        across = (np.arange(self.width) - centre_x) / self.focal_px
        down = (np.arange(self.height) - centre_y) / self.focal_px
        axes = self.rotation()
        rays = (
            axes[0][:, None, None] * across[None, None, :]
            + axes[1][:, None, None] * down[None, :, None]
            + axes[2][:, None, None]
        )
        return np.asarray(rays, dtype=np.float32)


def orbit(target: Vector, radius_m: float, azimuth_rad: float, height_m: float, lens: tuple[float, int, int]) -> Camera:
    """Return a camera that looks at `target` from `radius_m` away and `height_m` above the ground.

    Azimuth 0 is south of the target; a larger azimuth is farther to the camera's own right, counter-clockwise seen from
    above. `lens` is focal length, width and height in pixels.
    """
    x = target[0] + radius_m * np.sin(azimuth_rad)
    y = target[1] - radius_m * np.cos(azimuth_rad)
    pitch = float(np.arctan2(height_m - target[2], radius_m))
    return Camera((float(x), float(y), height_m), -azimuth_rad, pitch, *lens)


@dataclass(frozen=True, eq=False)
class SceneBlock:
    """A box with its own axes, rotated by `yaw_rad` about the vertical."""

    centre: Vector
    half: Vector
    yaw_rad: float
    texture: Texture

    def corners(self) -> Points:
        """Return the eight corners, (8, 3)."""
        return np.asarray(SIGNS * self.half @ self.axes() + self.centre)

    def axes(self) -> Points:
        """Return the block's own axes in world coordinates, (3, 3), one per row."""
        sin, cos = np.sin(self.yaw_rad), np.cos(self.yaw_rad)
        return np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])


@dataclass(frozen=True, eq=False)
class Ball:
    """A sphere."""

    centre: Vector
    radius: float
    texture: Texture

    def corners(self) -> Points:
        """Return the corners of a cube around it, (8, 3)."""
        return np.asarray(SIGNS * self.radius + self.centre)


Solid = SceneBlock | Ball


@dataclass(frozen=True, eq=False)
class Wall:
    """An infinite vertical wall through (0, `distance_m`), rotated by `yaw_rad`."""

    distance_m: float
    yaw_rad: float
    texture: Texture


@dataclass(frozen=True, eq=False)
class Scene:
    """The solids and the light of a scene. `sun` points towards the light; light strengths are relative.

    `haze_m` is the distance in metres after which 1/e of the light is left and the sky's light replaces the rest.
    """

    ground: Texture
    wall: Wall | None
    solids: tuple[Solid, ...]
    sun: Vector
    sunlight: float
    ambient: float
    clouds: Texture
    haze_m: float = 160.0


@dataclass(frozen=True, eq=False)
class RenderedView:
    """A rendered picture and its ground truth; every map is (H, W).

    `depth_m` is along the optical axis, and infinite for the sky. `albedo` is linear luminance, 0..1. `light` is the
    irradiance relative to full sun. `visible` is, per solid, the share of visible pixels among those that the solid
    would cover alone.
    """

    rgb: Pixels
    depth_m: FloatMap
    ids: npt.NDArray[np.uint8]
    albedo: FloatMap
    light: FloatMap
    visible: tuple[float, ...]


class _Hit(NamedTuple):
    """Where a window's rays hit a surface.

    `depth` is infinite where a ray hits nothing, `normal` (3, h, w) points outwards, and `u` and `v` are the
    coordinates on the surface.
    """

    depth: FloatMap
    normal: FloatMap
    u: FloatMap
    v: FloatMap


class _Buffers:
    """Buffers with a value per pixel, to which surfaces are added one by one."""

    def __init__(self, camera: Camera) -> None:
        size = (camera.height, camera.width)
        self.rays = camera.rays()
        self.ray_length = np.asarray(np.sqrt((self.rays**2).sum(axis=0)), dtype=np.float32)
        self.focal_px = camera.focal_px
        self.depth = np.full(size, np.inf, dtype=np.float32)
        self.ids = np.zeros(size, dtype=np.uint8)
        self.normal = np.zeros((3, *size), dtype=np.float32)
        self.albedo = np.zeros((*size, 3), dtype=np.float32)

    def add(self, number: int, hit: _Hit, window: tuple[slice, slice], texture: Texture) -> int:
        """Add a surface where it is the nearest; return the number of pixels that the surface would cover alone."""
        nearest = hit.depth < self.depth[window]
        covered = int(np.isfinite(hit.depth).sum())
        if not nearest.any():
            return covered
        # Sample texture only where needed, because much of ground and wall is hidden or beyond the horizon.
        rows, columns = (np.flatnonzero(nearest.any(axis=axis)) for axis in (1, 0))
        inner = slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)
        y0, x0 = window[0].start, window[1].start
        window = (slice(y0 + inner[0].start, y0 + inner[0].stop), slice(x0 + inner[1].start, x0 + inner[1].stop))
        nearest, normal = nearest[inner], hit.normal[:, inner[0], inner[1]]
        slant = np.abs((normal * self.rays[:, window[0], window[1]]).sum(axis=0)) / self.ray_length[window]
        depth = np.where(np.isfinite(hit.depth[inner]), hit.depth[inner], 1.0)
        footprint = depth / self.focal_px / np.sqrt(np.maximum(slant, 0.02))
        albedo = sample(texture, hit.u[inner], hit.v[inner], np.asarray(footprint, dtype=np.float32))
        self.depth[window] = np.where(nearest, hit.depth[inner], self.depth[window])
        self.ids[window] = np.where(nearest, number, self.ids[window])
        self.normal[:, window[0], window[1]] = np.where(nearest, normal, self.normal[:, window[0], window[1]])
        np.copyto(self.albedo[window], albedo, where=cv2.merge([nearest.view(np.uint8)] * 3).view(np.bool_))
        return covered


def render(scene: Scene, camera: Camera, rng: np.random.Generator, *, noise: float = 2.5) -> RenderedView:
    """Cast one ray per pixel. `rng` generates the sensor noise, whose standard deviation is `noise` in grey levels."""
    buffers = _Buffers(camera)
    everything = (slice(0, camera.height), slice(0, camera.width))
    buffers.add(GROUND, _ground_hit(buffers.rays, camera.position), everything, scene.ground)
    if scene.wall is not None:
        buffers.add(WALL, _wall_hit(buffers.rays, camera.position, scene.wall), everything, scene.wall.texture)
    covered = []
    for index, solid in enumerate(scene.solids):
        # The rows and columns that the solid may cover; they are empty if it is outside of the picture.
        rows, columns = everything
        projected = camera.project(solid.corners())
        if projected[:, 2].min() > NEAR_M:
            size = (camera.width, camera.height)
            low = np.clip(np.floor(projected[:, :2].min(axis=0)), 0, size).astype(int)
            high = np.clip(np.ceil(projected[:, :2].max(axis=0)) + 1, 0, size).astype(int)
            rows, columns = slice(int(low[1]), int(high[1])), slice(int(low[0]), int(high[0]))
        rays, origin = buffers.rays[:, rows, columns], camera.position
        hit = _block_hit(rays, origin, solid) if isinstance(solid, SceneBlock) else _ball_hit(rays, origin, solid)
        covered.append(buffers.add(FIRST_SOLID + index, hit, (rows, columns), solid.texture))
    light = _light(scene, buffers, camera)
    seen = [int((buffers.ids == FIRST_SOLID + index).sum()) for index in range(len(scene.solids))]
    return RenderedView(
        rgb=_develop(scene, buffers, light, rng, noise),
        depth_m=buffers.depth,
        ids=buffers.ids,
        albedo=_dot(LUMINANCE, np.moveaxis(buffers.albedo, 2, 0)),
        light=light,
        visible=tuple(pixels / total if total else 0.0 for pixels, total in zip(seen, covered, strict=True)),
    )


def _ground_hit(rays: FloatMap, origin: Vector) -> _Hit:
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.where(rays[2] < 0, -origin[2] / rays[2], np.inf)
    depth = np.where(depth < FAR_M, depth, np.inf).astype(np.float32)
    reach = np.where(np.isfinite(depth), depth, 0)
    return _Hit(depth, _constant_normal((0, 0, 1), depth), origin[0] + reach * rays[0], origin[1] + reach * rays[1])


def _wall_hit(rays: FloatMap, origin: Vector, wall: Wall) -> _Hit:
    sin, cos = float(np.sin(wall.yaw_rad)), float(np.cos(wall.yaw_rad))
    towards = -sin * rays[0] - cos * rays[1]
    gap = -sin * origin[0] - cos * (origin[1] - wall.distance_m)
    with np.errstate(divide="ignore", invalid="ignore"):
        depth = np.where(towards < 0, -gap / towards, np.inf)
    depth = np.where((depth > NEAR_M) & (depth < FAR_M), depth, np.inf).astype(np.float32)
    reach = np.where(np.isfinite(depth), depth, 0)
    along = cos * (origin[0] + reach * rays[0]) - sin * (origin[1] + reach * rays[1])
    return _Hit(depth, _constant_normal((-sin, -cos, 0), depth), along, -(origin[2] + reach * rays[2]))


def _block_hit(rays: FloatMap, origin: Vector, block: SceneBlock) -> _Hit:
    """Intersect by the slab method: a ray is inside the block between its latest entry and its earliest exit."""
    axes = block.axes().astype(np.float32)
    local = np.stack([_dot(axis, rays) for axis in axes])
    start = axes @ (np.asarray(origin) - block.centre).astype(np.float32)
    half = np.asarray(block.half, dtype=np.float32)
    local = np.where(np.abs(local) < 1e-9, np.float32(1e-9), local)
    entry = (-np.sign(local) * half[:, None, None] - start[:, None, None]) / local
    leave = (np.sign(local) * half[:, None, None] - start[:, None, None]) / local
    depth = entry.max(axis=0)
    hit = (depth <= leave.min(axis=0)) & (depth > NEAR_M)
    axis = entry.argmax(axis=0)
    normal = np.stack([np.where(axis == k, -np.sign(local[k]), 0) for k in range(3)])
    at = start[:, None, None] + depth * local
    # Each face samples another part of the tile; the third coordinate is constant on the face.
    shift = (axis * 2 + (normal.sum(axis=0) > 0)) * 0.61
    u = np.where(axis == 0, at[1], at[0]) + shift
    v = np.where(axis == 2, at[1], -at[2])
    return _Hit(
        np.where(hit, depth, np.inf).astype(np.float32),
        np.stack([_dot(axis, normal.astype(np.float32)) for axis in axes.T]),
        np.where(hit, u, 0).astype(np.float32),
        np.where(hit, v, 0).astype(np.float32),
    )


def _ball_hit(rays: FloatMap, origin: Vector, ball: Ball) -> _Hit:
    start = np.asarray(origin) - ball.centre
    a = (rays**2).sum(axis=0)
    b = _dot(start, rays)
    root = b * b - a * float(start @ start - ball.radius**2)
    depth = (-b - np.sqrt(np.maximum(root, 0))) / a
    hit = (root > 0) & (depth > NEAR_M)
    normal = (start[:, None, None] + np.where(hit, depth, 0) * rays) / ball.radius
    # Longitude and latitude as lengths on the surface.
    u = np.arctan2(normal[0], -normal[1]) * ball.radius
    v = -np.arcsin(np.clip(normal[2], -1, 1)) * ball.radius
    return _Hit(
        np.where(hit, depth, np.inf).astype(np.float32),
        np.asarray(normal, dtype=np.float32),
        np.where(hit, u, 0).astype(np.float32),
        np.where(hit, v, 0).astype(np.float32),
    )


def _constant_normal(normal: Vector, like: FloatMap) -> FloatMap:
    return np.broadcast_to(np.asarray(normal, dtype=np.float32)[:, None, None], (3, *like.shape))


def _light(scene: Scene, buffers: _Buffers, camera: Camera) -> FloatMap:
    """Return irradiance (H, W): sky light from above, and Lambert's cosine towards the sun outside shadows."""
    facing = np.maximum(_dot(scene.sun, buffers.normal), 0)
    dome = scene.ambient * (0.7 + 0.3 * buffers.normal[2])
    reach = np.where(np.isfinite(buffers.depth), buffers.depth, 0)[::2, ::2]
    position, sun = np.asarray(camera.position, np.float32)[:, None, None], np.asarray(scene.sun)
    points = (position + reach * buffers.rays[:, ::2, ::2]).astype(np.float32)
    lit = np.ones(reach.shape, dtype=np.float32)
    for solid in scene.solids:
        # Whether the path from each point to the sun passes through the solid.
        start = points - np.asarray(solid.centre, dtype=np.float32)[:, None, None]
        if isinstance(solid, Ball):
            b = _dot(sun, start)
            root = b * b - (start**2).sum(axis=0) + solid.radius**2
            shaded = (root > 0) & (-b + np.sqrt(np.maximum(root, 0)) > 0.03)
        else:
            axes = solid.axes()
            towards = axes @ sun
            slope = np.where(np.abs(towards) < 1e-9, 1e-9, towards).astype(np.float32)[:, None, None]
            local = np.stack([_dot(axis, start) for axis in axes])
            half = np.asarray(solid.half, dtype=np.float32)[:, None, None]
            leave = ((np.sign(slope) * half - local) / slope).min(axis=0)
            entry = ((-np.sign(slope) * half - local) / slope).max(axis=0)
            shaded = (leave > 0.03) & (entry < leave)
        lit[shaded] = 0
    smooth = cv2.GaussianBlur(lit, (0, 0), 0.8)
    lit = np.asarray(cv2.resize(smooth, (camera.width, camera.height), interpolation=cv2.INTER_LINEAR), np.float32)
    return np.asarray(dome + scene.sunlight * facing * lit, dtype=np.float32)


def _develop(scene: Scene, buffers: _Buffers, light: FloatMap, rng: np.random.Generator, noise: float) -> Pixels:
    """Convert radiance to an 8-bit photograph: haze, exposure, vignette, lens blur, sRGB-like curve, sensor noise."""
    height, width = buffers.depth.shape
    clear = np.exp(-np.minimum(buffers.depth, 1e6) / scene.haze_m, dtype=np.float32)
    radiance = buffers.albedo * thrice(light * clear)
    radiance[buffers.ids == SKY] = 0
    exposure = 0.7 / max(float(np.percentile(radiance[::4, ::4].max(axis=2), 94)), 0.05)
    # The sky is bluer towards the top, with clouds where nothing is in front of it.
    rows = np.linspace(0, 1, height, dtype=np.float32)[:, None, None]
    zenith, horizon = np.array([0.42, 0.62, 0.95], np.float32), np.array([0.85, 0.88, 0.92], np.float32)
    sky = np.tile(zenith * (1 - rows) + horizon * rows, (1, width, 1))
    if (buffers.ids == SKY).any():
        across, up = buffers.rays[0] / buffers.ray_length, 2 * buffers.rays[2] / buffers.ray_length
        cover = sample(scene.clouds, across, np.asarray(up, np.float32), np.full(up.shape, 0.003, np.float32))
        sky = sky * (0.75 + 0.5 * cover)
    radiance += np.asarray(sky, dtype=np.float32) * thrice(1 - clear)
    down, right = (np.linspace(-1, 1, size, dtype=np.float32) for size in (height, width))
    vignette = np.float32(exposure) * (1 - 0.06 * (down[:, None] ** 2 + right[None, :] ** 2))
    soft = cv2.GaussianBlur(np.asarray(radiance * thrice(vignette), np.float32), (0, 0), 0.6)
    curve = np.power(np.clip(soft, 0, 1), 1 / 2.2, dtype=np.float32) * 255
    curve += rng.standard_normal((height, width, 3), dtype=np.float32) * np.float32(noise)
    return np.asarray(np.clip(np.rint(curve), 0, 255), dtype=np.uint8)


def _dot(vector: npt.ArrayLike, field: FloatMap) -> FloatMap:
    """Return the scalar product of a vector (3,) with a field of vectors (3, h, w)."""
    x, y, z = np.asarray(vector, dtype=np.float32)
    return np.asarray(x * field[0] + y * field[1] + z * field[2], dtype=np.float32)
