"""Decide whether an image shows anything: whether its parts differ by more than its fine grain explains.

    if not shows_something(pixels): ...    # one colour, a gradient, noise, or too few pixels

In noise, the means of the parts differ only as far as chance predicts from the spread inside the parts; in a meaningful
image they differ by more. The measure is 1 for noise of any distribution, strength and colour whose grain is at most a
thirtieth of the short side.

Noise of coarser grain, such as 1/f noise, has parts that differ, but its colour steps have a normal distribution at
every scale. Things have edges: a few steps are large and most are small (Field, J. Opt. Soc. Am. A 4 (1987) 2379-2394).
An image without any edge counts as noise, too: discs blurred by an eighth of the side, or one wide Gaussian blob.

A picture of flat patches (`is_flat`) has edges, but nothing varies inside its parts beyond their grain: a drawing of
plain areas, random squares, a chessboard, stripes. It has no light and no depth. It is a patchwork (`is_patchwork`) if
no patch is the ground of the others: then it shows no object either, although one of its patches may be named. Grain,
blur and the compression of a JPEG do not hide patches, because their flatness is measured on means of cells.

Strong JPEG compression turns noise and gradients into blocks of 8 px, whose edges look like those of objects. If this
grid is visible, the means of the blocks must show something, too.
"""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from hybrid.tool import Pixels

# Number of parts along the short side, and number of pieces along each side of a part. The spread of a part's pieces
# measures the grain of the part.
PARTS: Final = 8
PIECES: Final = 4
# Smallest side of a piece in pixels: below it, the spread inside a part is that of single pixels.
MIN_PIECE_PX: Final = 2
# Largest number of parts along the long side.
MAX_PARTS: Final = 96
# Lower bound of the grain, in grey levels: rounding is not grain.
ROUNDING: Final = 0.4
# Lower bound of the variation of texture between the pieces of a part, as a share of the median texture.
EVEN_TEXTURE: Final = 0.1
# Lower bound of the variation of colour between the pieces of a part, as a share of the median texture. Fine stripes
# that do not divide a piece evenly change its mean by the same amount in every piece of a part. This is neither grain
# nor content.
EVEN_STRIPES: Final = 0.08
# Images with a shorter side are assumed to show nothing.
MIN_SIDE_PX: Final = 16
# Smallest `structure` of an image that shows something. Noise with a grain of up to a thirtieth of the short side stays
# below 6.8 (except for some images of 16 px per side); 209 photographs are above 7.7.
SOMETHING: Final = 7.2
# Side of a block of a JPEG, and the side of the part of the image in which the grid of blocks is looked for.
BLOCK_PX: Final = 8
GRID_PX: Final = 1024
# Smallest ratio of the steps on the grid to those beside it at which the grid is visible. The ratio is at most 1.6 in
# 209 photographs as published, and above 1.7 in nine tenths of them after compression with quality 10.
VISIBLE_GRID: Final = 1.7
# Blocks show something if the kurtosis of the steps between them, the largest of these steps as a share of the range,
# and the structure are all at least these values. With quality 10, 69 of 70 photographs of at least 240 px are above
# all three; compressed noise and gradients are below one of them.
BLOCK_KURTOSIS: Final = 4.6
BLOCK_STEP: Final = 0.32
BLOCK_STRUCTURE: Final = 3.5
# Ratio of the steps on the grid to those beside it from which blocks are bare: they contain almost nothing, as after
# strong compression of a gradient. The ratio is at most 2.8 in 209 photographs, even at 48 px and quality 10.
BARE_GRID: Final = 4.0
# Bare blocks can show something only if the largest step between their means, as a share of the range, is at least
# this. The step is at most 0.63 in gradients of at least 64 px, and near 1 in a drawing whose parts are on such a grid.
BARE_STEP: Final = 0.65
# Smallest number of blocks along the short side at which the structure of the blocks counts. With 20 blocks, half of
# the photographs are below `BLOCK_STRUCTURE`.
STRUCTURE_BLOCKS: Final = 28
# With fewer than `MIN_BLOCKS` blocks along the short side, the kurtosis depends on chance. Then only a kurtosis below
# `EVEN_KURTOSIS`, that of even steps, means that the image shows nothing. Of 506 images of 32 to 72 px with a visible
# grid, the kurtosis is at most 2.24 in all 197 vignettes, and above 2.3 in all but one of 309 photographs and drawn
# scenes.
MIN_BLOCKS: Final = 10
EVEN_KURTOSIS: Final = 2.3
# Short sides, px, to which an image is reduced to measure its colour steps.
SCALES_PX: Final = (32, 64, 128)
# Colour steps count as noise if their kurtosis, the largest over the scales, is in this range. The kurtosis is 2.3 to
# 4.3 for 1/f noise of every exponent from 0 to 2.5, up to 5.4 for widely blurred noise, and above 6.4 in 209
# photographs. It is below the range for gradients, and for stripes of up to about 2 px at the finest scale.
NOISE_KURTOSIS: Final = (2.2, 4.5)
# An image has no edge if its largest step between neighbouring pixels at the finest scale is at most this share of the
# range of values, and its kurtosis at most `NO_EDGE_KURTOSIS`. The step is 1 for stripes, 0.02 for a gradient, and 0.15
# for a sine with a period of a sixth of the short side.
NO_EDGE: Final = 0.17
# Largest kurtosis of a picture without an edge.
NO_EDGE_KURTOSIS: Final = 5.5
# Largest step, as a share of the range of values, of a gradient in bands, whatever the kurtosis. The step is at least
# 0.43 in 209 photographs.
BAND: Final = 0.08
# Limits of the largest step between which a confidence above chance grows from nothing to all of it. The step is at
# most 0.19 in squares of noise blurred by a sixtieth of the short side or more. It is at least 0.47 in 120 generated
# questions on depth and reflectance, and at least 0.44 in all but one (0.39) of 62 photographs without their marks.
EDGE: Final = (0.2, 0.43)
# An image is a gradient in bands if its largest step is at most `BANDED` and its `monotonicity`, at a short side of
# `MONOTONICITY_PX`, at least `MONOTONE`. The monotonicity is at most 0.35 in 209 photographs, 0.79 if a disc with a
# tenth of the range lies on a gradient, and 1 for bands.
BANDED: Final = 0.35
MONOTONE: Final = 0.95
MONOTONICITY_PX: Final = 64
# Smallest variance of a colour step, in squared grey levels: rounding is not a step.
STEP_VARIANCE: Final = 0.3
# Settings of the search for patches: the short sides, px, to which the image is reduced (the second only if it shrinks
# the image further), the blur before gradients, and the gradient of an edge, in grey levels per px. At short sides of
# 64 and 48 px, smooth surfaces in light would count as flat.
PATCHES_PX: Final = (256, 128)
SHRUNK: Final = 1.17
PATCH_BLUR: Final = 0.8
PATCH_EDGE: Final = 4.0
# Luminance and two chroma channels of RGB: grain and compression are mostly in one of them.
CHANNELS: Final = ((0.299, 0.587, 0.114), (-0.169, -0.331, 0.5), (0.5, -0.419, -0.081))
# Limits of the standard deviation of the means of a patch's cells (2 x 2 px), beyond what the grain in the cells
# predicts. The patch is flat up to the first limit, and up to the second if the variance of the means is also at most
# `MAX_RATIO` times the predicted variance (1 for fine grain, 2 to 5 after compression, above 19 in rendered paints in
# light).
FLAT: Final = (0.5, 3.0)
MAX_RATIO: Final = 5.0
# Distance, px, from a flat patch within which a pixel belongs to its border.
BORDER_PX: Final = 3
# An image counts as consisting of flat patches if these and their borders cover at least this share of it. The covered
# share is at most 0.35 in 209 photographs (0.54 if these are reduced to a short side of 64 px), 0.42 in 100 rendered
# scenes and 0.30 in 300 pictures of rendered paints.
IN_PATCHES: Final = 0.6
# Share of the image in flat patches above which confidences in answers about the image are reduced.
DOUBTFUL: Final = 0.42
# Short sides, px. An image up to the first size keeps only the share `SMALL_SUPPORT` of a confidence above chance; an
# image from the second size on keeps all of it. By every measure here, strongly compressed noise, gradients and patches
# of up to 80 px have the same blocks as photographs of that size.
SMALL_PX: Final = (64, 160)
SMALL_SUPPORT: Final = 0.15
# A picture repeats itself if its correlation with itself, shifted by a period, reaches the first value along its better
# axis and the second value along the other axis, after a drop of at least `DROP` on the way there. The two correlations
# are at most 0.91 and 0.85 in 51 photographs of facades and walls, and in the middles of these photographs except for
# one that shows only a grid of lines. They are 0.99 and 0.66 in a drawn fence in front of a view, and above 0.95 and
# 0.8 in even patterns of at least 240 px.
REPEATS: Final = (0.95, 0.8)
DROP: Final = 0.15
REPEAT_PX: Final = 96
# Smallest variance of an overlap that counts as evidence, as a share of the variance of the picture.
OVERLAP_CONTRAST: Final = 0.5
# Largest period that is looked for, as a share of the side.
PERIOD: Final = 0.55
# Share of the image from which a patch counts as the ground (background) of the others.
GROUND: Final = 0.25


# An RGB image (H, W, 3) in grey levels, as floats.
Values = npt.NDArray[np.float32]


class Patches(NamedTuple):
    """Two shares of an image, 0..1: that of all flat patches and their borders, and that of the largest flat patch."""

    covered: float
    largest: float


def structure(pixels: Pixels | Values) -> float:
    """Return the distance of the most different part of an RGB image (H, W, 3) from the median of all parts.

    The parts are compared by mean colour, after an even gradient is subtracted, and by strength of texture. The unit is
    the standard deviation predicted from the grain. The distance is 0 for one colour, and for a side below
    `MIN_SIDE_PX`.
    """
    import cv2

    height, width = pixels.shape[:2]
    short = min(height, width)
    if short < MIN_SIDE_PX:
        return 0.0
    parts = min(PARTS, short // (PIECES * MIN_PIECE_PX))
    rows, columns = (min(MAX_PARTS, round(parts * side / short)) for side in (height, width))
    size = (columns * PIECES, rows * PIECES)
    values = pixels.astype(np.float32, copy=False)
    means = np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float32)
    level = means - _ramp(means)
    squares = np.asarray(cv2.resize(values * values, size, interpolation=cv2.INTER_AREA), np.float32)
    texture = np.sqrt(np.maximum(squares - means * means, 0))
    # In black-and-white images all textures are near the maximum, so their spread is small.
    strength = float(np.median(np.sqrt((texture**2).sum(axis=2))))
    return max(
        _apart(level, rows, columns, max(ROUNDING, EVEN_STRIPES * strength)),
        _apart(texture, rows, columns, max(ROUNDING, EVEN_TEXTURE * strength)),
    )


def _ramp(values: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return the plane (H, W, 3) that fits values best.

    The caller subtracts it, because an even change of brightness shows nothing.
    """
    height, width = values.shape[:2]
    down, across = (np.arange(length, dtype=np.float32) - (length - 1) / 2 for length in (height, width))
    centred = values - values.mean(axis=(0, 1))
    by_row = np.tensordot(down, centred.mean(axis=1), axes=1) / float((down**2).sum())
    by_column = np.tensordot(across, centred.mean(axis=0), axes=1) / float((across**2).sum())
    plane = down[:, None, None] * by_row + across[None, :, None] * by_column
    return np.asarray(values.mean(axis=(0, 1)) + plane, np.float32)


def _apart(pieces: npt.NDArray[np.float32], rows: int, columns: int, least: float) -> float:
    """Return how far the most different part's mean is from the median part's, in standard errors of the grain."""
    blocks = pieces.reshape(rows, PIECES, columns, PIECES, 3).swapaxes(1, 2).reshape(rows * columns, PIECES**2, 3)
    means = blocks.mean(axis=1)
    grains = np.sqrt(blocks.var(axis=1, ddof=1).sum(axis=1))
    # The median over the parts is the grain of the ground, even if a few objects cover it; the mean accounts for rare
    # specks.
    grain = max(float(np.median(grains)), float(grains.mean()) / 2, least)
    distances = np.sqrt(((means - np.median(means, axis=0)) ** 2).sum(axis=1))
    return float(distances.max()) * PIECES / grain


def step_kurtosis(pixels: Pixels | Values) -> float:
    """Return the kurtosis of the steps between neighbouring pixels of an RGB image (H, W, 3), at least 16 px per side.

    The largest value over scales, directions and channels is returned; a normal distribution has 3.
    """
    import cv2

    values, full = [], pixels.astype(np.float32, copy=False)
    for side in SCALES_PX:
        scale = min(1.0, side / min(pixels.shape[:2]))
        size = (round(pixels.shape[1] * scale), round(pixels.shape[0] * scale))
        small = np.asarray(cv2.resize(full, size, interpolation=cv2.INTER_AREA), np.float32)
        for axis in (0, 1):
            steps = np.diff(small, axis=axis)
            squares = (steps - steps.mean(axis=(0, 1))) ** 2
            variance = np.maximum(squares.mean(axis=(0, 1)), STEP_VARIANCE)
            values.append(float(((squares**2).mean(axis=(0, 1)) / variance**2).max()))
    return max(values)


def shows_something(pixels: Pixels) -> bool:
    """Return whether an RGB image (H, W, 3) shows anything but one colour, a gradient, soft blobs or noise."""
    values = pixels.astype(np.float32)
    return structure(values) >= SOMETHING and not _has_steps_of_noise(values) and not is_only_blocks(pixels)


def has_edges(pixels: Pixels) -> bool:
    """Return whether an RGB image (H, W, 3) has edges of things or an even pattern, not only noise or JPEG blocks."""
    if min(pixels.shape[:2]) < MIN_SIDE_PX:
        return False
    return step_kurtosis(pixels) > NO_EDGE_KURTOSIS and not is_only_blocks(pixels)


def is_coarse_noise(pixels: Pixels) -> bool:
    """Return whether the parts of an RGB image (H, W, 3) differ, but only as noise, soft blobs or blocks of a JPEG."""
    values = pixels.astype(np.float32)
    return structure(values) >= SOMETHING and (_has_steps_of_noise(values) or is_only_blocks(pixels))


def is_only_blocks(pixels: Pixels) -> bool:
    """Return whether an RGB image (H, W, 3) has visible JPEG blocks whose mean colours show nothing."""
    import cv2

    ratio = block_steps(pixels)
    if ratio < VISIBLE_GRID:
        return False
    rows, columns = (side // BLOCK_PX for side in pixels.shape[:2])
    cropped = pixels[: rows * BLOCK_PX, : columns * BLOCK_PX]
    means = np.asarray(cv2.resize(cropped, (columns, rows), interpolation=cv2.INTER_AREA), np.uint8)
    step = largest_step(means)
    if step < BLOCK_STEP or (ratio >= BARE_GRID and step < BARE_STEP):
        return True
    if math.isinf(ratio):  # A drawing whose parts are on a grid of 8 px, such as a sprite
        return False
    if step_kurtosis(means) < (BLOCK_KURTOSIS if min(rows, columns) >= MIN_BLOCKS else EVEN_KURTOSIS):
        return True
    return min(rows, columns) >= STRUCTURE_BLOCKS and structure(means) < BLOCK_STRUCTURE


def block_steps(pixels: Pixels) -> float:
    """Return the ratio of the mean step of an RGB image (H, W, 3) across block edges to the mean step beside them.

    The ratio is about 1 without compression. Of the ratios in the two directions the smaller is returned; it is 0 for
    an image with fewer than two blocks per side, and infinite if no step is off the grid.
    """
    import cv2

    if min(pixels.shape[:2]) < 2 * BLOCK_PX:
        return 0.0
    # Start the cut at an edge of a block.
    y0, x0 = (max(0, side - GRID_PX) // 2 // BLOCK_PX * BLOCK_PX for side in pixels.shape[:2])
    part = np.ascontiguousarray(pixels[y0 : y0 + GRID_PX, x0 : x0 + GRID_PX])
    values = np.asarray(cv2.cvtColor(part, cv2.COLOR_RGB2YCrCb), np.uint8)
    ratios = []
    for axis in (0, 1):
        steps = _mean_steps(values, axis)
        on_grid = np.arange(len(steps)) % BLOCK_PX == BLOCK_PX - 1
        if not steps[~on_grid].any():
            return math.inf if steps.any() else 0.0
        # Add 0.1 grey levels to both means: the step that rounding alone causes.
        ratios.append(float((steps[on_grid].mean() + 0.1) / (steps[~on_grid].mean() + 0.1)))
    return min(ratios)


def _mean_steps(values: Pixels, axis: int) -> npt.NDArray[np.float32]:
    """Return for each pair of neighbouring lines along an axis their mean step, summed over the channels.

    The sums over `values` (H, W, 3) are exact: OpenCV adds whole numbers, much faster than NumPy reduces an axis of
    three.
    """
    import cv2

    height, width = values.shape[:2]
    if axis == 0:
        steps = cv2.absdiff(values[1:], values[:-1]).reshape(height - 1, -1)
        return np.asarray(cv2.reduce(steps, 1, cv2.REDUCE_SUM, dtype=cv2.CV_32S)[:, 0] / np.float32(width), np.float32)
    steps = cv2.absdiff(values[:, 1:], values[:, :-1]).reshape(height, -1)
    by_channel = cv2.reduce(steps, 0, cv2.REDUCE_SUM, dtype=cv2.CV_32S).reshape(-1, 3)
    return np.asarray(_add_channels(by_channel) / np.float32(height), np.float32)


def _add_channels(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Sum the three entries of the last axis: NumPy's reduction takes ten times as long on such a short axis."""
    return np.asarray(values[..., 0] + values[..., 1] + values[..., 2])


def _has_steps_of_noise(pixels: Pixels | Values) -> bool:
    low, high = NOISE_KURTOSIS
    kurtosis = step_kurtosis(pixels)
    step = largest_step(pixels)
    if low <= kurtosis <= high or step <= BAND or (kurtosis <= NO_EDGE_KURTOSIS and step <= NO_EDGE):
        return True
    return step <= BANDED and monotonicity(pixels) >= MONOTONE


def monotonicity(pixels: Pixels | Values) -> float:
    """Return the net change along the rows and columns of an RGB image (H, W, 3), as a share, 0..1, of all their steps.

    It is 1 for an even gradient, with bands or without, and near 0 for lines that rise as much as they fall.
    """
    small = _reduced(pixels, MONOTONICITY_PX)
    steps = [np.diff(small, axis=axis) for axis in (0, 1)]
    total = sum(float(np.abs(step).sum()) for step in steps)
    return sum(float(np.abs(step.sum(axis=axis)).sum()) for axis, step in enumerate(steps)) / max(total, 1e-9)


def largest_step(pixels: Pixels | Values) -> float:
    """Return the largest step between neighbouring pixels of an RGB image (H, W, 3), as a share of its range, 0..1."""
    small = _reduced(pixels, SCALES_PX[-1])
    # Reduce the rows first: in NumPy, a reduction of both axes to three values takes several times as long.
    high, low = small.max(axis=0).max(axis=0), small.min(axis=0).min(axis=0)
    spread = float((high - low).max())
    steps = (np.abs(np.diff(small, axis=axis)) for axis in (0, 1))
    return max((float(step.max()) for step in steps if step.size), default=0.0) / max(spread, 1.0)


def is_flat(pixels: Pixels) -> bool:
    """Return whether an RGB image (H, W, 3) consists of patches of one colour each, with or without a ground."""
    return find_patches(pixels).covered >= IN_PATCHES


def is_patchwork(pixels: Pixels) -> bool:
    """Return whether an RGB image (H, W, 3) consists of patches of one colour each, none of which is a ground."""
    patches = find_patches(pixels)
    return patches.covered >= IN_PATCHES and patches.largest < GROUND


def support_by_size(pixels: Pixels) -> float:
    """Return the share, 0..1, of a confidence above chance that the size of an RGB image (H, W, 3) supports."""
    (low, high), short = SMALL_PX, min(pixels.shape[:2])
    return float(np.clip(SMALL_SUPPORT + (1 - SMALL_SUPPORT) * (short - low) / (high - low), SMALL_SUPPORT, 1))


def support_by_patches(pixels: Pixels) -> float:
    """Return the factor, 0..1, by which flat patches in an RGB image reduce the excess of a confidence over chance."""
    return float(np.clip((IN_PATCHES - find_patches(pixels).covered) / (IN_PATCHES - DOUBTFUL), 0, 1))


def support_by_edges(pixels: Pixels) -> float:
    """Return the share, 0..1, of a confidence above chance that the sharpest edge of an RGB image (H, W, 3) supports.

    Without an edge, an area of another brightness may be a thing, a stain of paint, or the light.
    """
    low, high = EDGE
    return float(np.clip((largest_step(pixels) - low) / (high - low), 0, 1))


def repeats(pixels: Pixels) -> bool:
    """Return whether an RGB image (H, W, 3) repeats itself, like a chessboard, so that every place looks like others.

    The correlation of such an image with itself, over the overlap, falls with the shift and rises again to nearly 1 at
    a period. It does so along both axes, or stays near 1 along one of them, as for stripes. For a photograph of a wall
    or a row of windows it does not rise so far, and for a fence in front of a view it rises only along the fence.
    """
    channels = _reduced(pixels, REPEAT_PX)
    # The channel with most contrast: two colours may be equally bright.
    small = channels[..., int(np.argmax(channels.std(axis=(0, 1))))]
    if min(small.shape) < MIN_SIDE_PX or float(small.std()) < 1:
        return False
    similar = _self_correlation(small)
    repeated = sorted(_repeated(line) for line in (similar[0], similar[:, 0]))
    # The correlation may stay high along one line of shifts, as along stripes, but must drop along at least one.
    rises = any((line - np.minimum.accumulate(line) >= DROP).any() for line in (similar[0], similar[:, 0]))
    return bool(rises and repeated[1] >= REPEATS[0] and repeated[0] >= REPEATS[1])


def _repeated(line: npt.NDArray[np.float64]) -> float:
    """Return the highest correlation after a drop along a line of shifts from 0 on; without a drop, the lowest one."""
    risen = line - np.minimum.accumulate(line) >= DROP
    return float(line[risen].max()) if risen.any() else float(line.min())


def _self_correlation(plane: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    """Return the correlation of a plane (h, w) with itself shifted by (down, right) px, up to `PERIOD`, -1..1.

    Each overlap is centred on its own mean: with the mean of the whole plane, two plain margins would correlate.
    """
    height, width = plane.shape
    size = (2 * height, 2 * width)
    centred = plane.astype(np.float64) - float(plane.mean())
    values, squares, ones = (np.fft.rfft2(part, size) for part in (centred, centred**2, np.ones_like(centred)))

    def correlate(first: npt.NDArray[np.complex128], second: npt.NDArray[np.complex128]) -> npt.NDArray[np.float64]:
        shifted = np.fft.irfft2(first.conj() * second, size)
        return np.asarray(shifted[: max(2, int(PERIOD * height)), : max(2, int(PERIOD * width))], np.float64)

    count = correlate(ones, ones)
    first, second = correlate(values, ones), correlate(ones, values)
    spreads = (correlate(squares, ones) - first**2 / count, correlate(ones, squares) - second**2 / count)
    # The minimum variance keeps overlaps without contrast from counting as evidence.
    least = OVERLAP_CONTRAST * float(centred.var()) * count
    spread = np.sqrt(np.maximum(spreads[0], least) * np.maximum(spreads[1], least))
    return np.asarray((correlate(values, values) - first * second / count) / spread, np.float64)


def find_patches(pixels: Pixels) -> Patches:
    """Return how much of an RGB image (H, W, 3) is in flat patches, at the reduced size at which this share is largest.

    The smaller size averages grain and the ringing of a JPEG away, and the larger one keeps small patches.
    """
    large, small = PATCHES_PX
    image = _reduced(pixels, large)
    found = _patches_of(image)
    if found.covered >= IN_PATCHES or min(image.shape[:2]) < SHRUNK * small:
        return found
    return max(found, _patches_of(_reduced(image, small)))


def _patches_of(image: npt.NDArray[np.float32]) -> Patches:
    import cv2

    rows, columns = (side // 2 for side in image.shape[:2])
    if min(rows, columns) < 4:
        return Patches(0.0, 0.0)
    labels = _label_plain_areas(image[: 2 * rows, : 2 * columns])
    values = np.asarray(cv2.transform(image[: 2 * rows, : 2 * columns], np.array(CHANNELS, np.float32)), np.float32)
    flat = _flat_labels(labels, values)[labels]
    if not flat.any():
        return Patches(0.0, 0.0)
    disc = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * BORDER_PX + 1, 2 * BORDER_PX + 1))
    covered = float(cv2.dilate(flat.astype(np.uint8), disc).mean())
    return Patches(covered, float(np.bincount(labels[flat]).max()) / labels.size)


def _label_plain_areas(image: npt.NDArray[np.float32]) -> npt.NDArray[np.int32]:
    """Label each pixel of an image (h, w, 3) with the number of its connected area without edges; 0 on edges."""
    import cv2

    # The median removes grain without moving edges.
    median = cv2.medianBlur(np.round(image).astype(np.uint8), 3).astype(np.float32)
    smooth = cv2.GaussianBlur(cv2.transform(median, np.array(CHANNELS, np.float32)), (0, 0), PATCH_BLUR)
    across, down = (np.asarray(cv2.Sobel(smooth, cv2.CV_32F, *order, ksize=3)) / 8 for order in ((1, 0), (0, 1)))
    squares = across * across + down * down
    # NumPy's maximum over an axis of three takes ten times as long.
    inside = np.maximum(np.maximum(squares[..., 0], squares[..., 1]), squares[..., 2]) < PATCH_EDGE**2
    return np.asarray(cv2.connectedComponents(inside.astype(np.uint8), connectivity=4)[1], np.int32)


def _flat_labels(labels: npt.NDArray[np.int32], values: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """Return for each label whether its area is flat, judged by cells of 2 x 2 px; with fewer than two, it is not.

    `labels` (h, w) and `values` (h, w, 3) have even sides; label 0 is no area.
    """
    import cv2

    corners = [labels[row::2, column::2] for row in (0, 1) for column in (0, 1)]
    whole = (corners[0] > 0) & np.logical_and.reduce([corners[0] == corner for corner in corners[1:]])
    members, count = corners[0][whole], int(labels.max()) + 1
    size = (labels.shape[1] // 2, labels.shape[0] // 2)
    means, squares = (
        np.asarray(cv2.resize(plane, size, interpolation=cv2.INTER_AREA))[whole] for plane in (values, values * values)
    )
    cells = np.maximum(np.bincount(members, minlength=count), 1)
    centres = np.stack([np.bincount(members, column, count) for column in means.T], axis=1) / cells[:, None]
    between = np.bincount(members, _add_channels((means - centres[members]) ** 2), count) / np.maximum(cells - 1, 1)
    # The variance of the pixels is 4/3 of the mean square about the mean of a cell of four pixels, and the variance of
    # this mean is a quarter of that.
    inside = _add_channels(np.maximum(squares - means * means, 0)) / 3
    expected = np.bincount(members, inside, count) / cells
    beyond = np.sqrt(np.maximum(between - expected, 0))
    even = (beyond <= FLAT[1]) & (between <= MAX_RATIO * expected)
    return np.asarray((cells >= 2) & ((beyond <= FLAT[0]) | even))


def _reduced(pixels: Pixels | npt.NDArray[np.float32], short_px: int) -> npt.NDArray[np.float32]:
    """Return an image (H, W, 3) reduced to a short side of at most `short_px`, as floats."""
    import cv2

    scale = min(1.0, short_px / min(pixels.shape[:2]))
    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    values = pixels.astype(np.float32, copy=False)
    return np.asarray(cv2.resize(values, size, interpolation=cv2.INTER_AREA), np.float32)
