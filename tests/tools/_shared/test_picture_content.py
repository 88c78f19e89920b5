"""Whether a picture shows anything: one colour and noise of many kinds do not; things and textures do."""

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from hybrid.benchmarks.blink.sample import item
from tools._shared.picture_content import (
    BARE_GRID,
    SMALL_SUPPORT,
    SOMETHING,
    VISIBLE_GRID,
    block_steps,
    has_edges,
    is_coarse_noise,
    is_flat,
    is_only_blocks,
    is_patchwork,
    largest_step,
    monotonicity,
    repeats,
    shows_something,
    structure,
    support_by_edges,
    support_by_patches,
    support_by_size,
)

Picture = npt.NDArray[np.uint8]
SIZES = ((240, 320), (64, 64), (60, 700))


def noise(kind: str, height: int, width: int, seed: int) -> Picture:
    rng = np.random.default_rng(seed)
    match kind:
        case "colours":
            values = rng.integers(0, 256, (height, width, 3))
        case "greys":
            values = rng.integers(0, 256, (height, width, 1))
        case "faint":
            values = 128 + rng.normal(0, 3, (height, width, 3))
        case "black and white":
            values = rng.integers(0, 2, (height, width, 1)) * 255
        case "specks":
            values = np.where(rng.random((height, width, 1)) < 0.03, 255, 90)
        case _:
            coarse = rng.integers(0, 256, (height // 2, width // 2, 3), dtype=np.uint8)
            values = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_NEAREST)
    return np.broadcast_to(np.clip(values, 0, 255), (height, width, 3)).astype(np.uint8)


@pytest.mark.parametrize("kind", ["colours", "greys", "faint", "black and white", "specks", "enlarged"])
@pytest.mark.parametrize("size", SIZES)
def test_noise_shows_nothing(kind: str, size: tuple[int, int]) -> None:
    assert max(structure(noise(kind, *size, seed)) for seed in range(8)) < SOMETHING


def fractal(exponent: float, channels: int, height: int, width: int, seed: int) -> Picture:
    """Return noise whose spectrum falls with a power of the frequency, in grey or in colour."""
    rng = np.random.default_rng(seed)
    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)[None])
    frequency[0, 0] = 1
    spectrum = np.fft.fft2(rng.normal(size=(height, width, channels)), axes=(0, 1)) / frequency[..., None] ** exponent
    spectrum[0, 0] = 0
    plane = np.fft.ifft2(spectrum, axes=(0, 1)).real
    values = np.clip(plane / plane.std() * 40 + 128, 0, 255)
    return np.broadcast_to(values, (height, width, 3)).astype(np.uint8)


@pytest.mark.parametrize("exponent", [0.5, 1.0, 1.5, 2.0])
@pytest.mark.parametrize("channels", [1, 3])
def test_noise_of_a_falling_spectrum_shows_nothing(exponent: float, channels: int) -> None:
    # The parts of such noise differ as those of a photograph do.
    assert max(structure(fractal(exponent, channels, 240, 320, seed)) for seed in range(4)) > SOMETHING or exponent < 1
    for size in SIZES:
        assert not any(shows_something(fractal(exponent, channels, *size, seed)) for seed in range(4))


def test_a_thing_in_front_of_such_noise_shows_something() -> None:
    for exponent in (0.5, 1.0, 2.0):
        picture = cv2.circle(fractal(exponent, 3, 240, 320, 1), (160, 120), 40, (230, 30, 30), -1)
        assert shows_something(np.asarray(picture, np.uint8))


@pytest.mark.parametrize("level", [0, 128, 255])
@pytest.mark.parametrize("size", [*SIZES, (1, 1), (2, 2), (15, 900)])
def test_one_colour_shows_nothing(level: int, size: tuple[int, int]) -> None:
    assert not shows_something(np.full((*size, 3), level, np.uint8))


@pytest.mark.parametrize("side", [20, 32, 48, 80])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("size", [(240, 320), (480, 640), (120, 700)])
def test_random_squares_are_a_patchwork(side: int, channels: int, size: tuple[int, int]) -> None:
    height, width = size
    rng = np.random.default_rng(side)
    for _ in range(2):
        levels = rng.integers(0, 256, (height // side + 1, width // side + 1, channels), dtype=np.uint8)
        picture = np.broadcast_to(levels.repeat(side, 0).repeat(side, 1)[:height, :width], (height, width, 3))
        # Squares that are small compared with the picture count as noise.
        assert is_patchwork(picture) or not shows_something(picture)


def test_things_on_a_ground_and_shaded_patches_are_no_patchwork() -> None:
    ground = np.full((240, 320, 3), 120, np.uint8)
    assert not is_patchwork(ground)
    for place, level in enumerate((10, 60, 180, 250)):
        cv2.circle(ground, (50 + 70 * place, 120), 30, (level, 90, 255 - level), -1)
    assert not is_patchwork(ground)
    board = np.asarray((np.arange(240)[:, None] // 40 + np.arange(320)[None] // 40) % 2, np.float64)
    assert is_patchwork(np.broadcast_to((60 + 120 * board)[..., None], (240, 320, 3)).astype(np.uint8))
    light = np.linspace(0.5, 1, 320)[None]
    assert not is_patchwork(np.broadcast_to(((60 + 120 * board) * light)[..., None], (240, 320, 3)).astype(np.uint8))


@pytest.mark.parametrize("radius", [8, 20, 50])
@pytest.mark.parametrize("channels", [1, 3])
def test_blurred_noise_shows_nothing(radius: int, channels: int) -> None:
    for seed in range(4):
        soft = cv2.GaussianBlur(np.random.default_rng(seed).normal(size=(240, 320, channels)), (0, 0), radius)
        soft = soft.reshape(240, 320, channels)
        scaled = np.clip(128 + 40 * (soft - soft.mean()) / soft.std(), 0, 255)
        assert not shows_something(np.broadcast_to(scaled, (240, 320, 3)).astype(np.uint8))


def test_a_small_thing_and_a_change_of_texture_show_something_and_gradients_do_not() -> None:
    disc = cv2.circle(np.full((480, 640, 3), 128, np.uint8), (400, 200), 8, (190, 190, 190), -1)
    assert shows_something(disc)
    ramp = np.broadcast_to(np.linspace(100, 140, 320)[None, :, None], (240, 320, 3)).astype(np.uint8)
    assert not shows_something(ramp)
    assert not shows_something(ramp.transpose(1, 0, 2) // 2 + ramp[:, :240].repeat(2, axis=0)[:320] // 2)
    curve = np.broadcast_to((np.linspace(-1, 1, 320) ** 2 * 60 + 80)[None, :, None], (240, 320, 3)).astype(np.uint8)
    # Like a gradient, the curve has no edge.
    assert not shows_something(curve)
    step = np.where(np.arange(320)[None, :, None] < 160, np.uint8(90), np.uint8(110))
    assert shows_something(np.broadcast_to(step, (240, 320, 3)).copy())
    # A picture whose local mean is the same everywhere, with stripes outside of a disc.
    stripes = np.where((np.arange(320) // 4 % 2)[None, :, None] > 0, 190, 66) + np.zeros((240, 320, 3))
    assert shows_something(cv2.circle(stripes, (160, 120), 50, (128, 128, 128), -1).astype(np.uint8))


def squares(side: int, height: int, width: int, seed: int) -> npt.NDArray[np.float32]:
    """Return random squares in colour."""
    levels = np.random.default_rng(seed).integers(0, 256, (height // side + 1, width // side + 1, 3))
    return levels.repeat(side, 0).repeat(side, 1)[:height, :width].astype(np.float32)


def bytes_of(values: npt.NDArray[np.float32]) -> Picture:
    return np.asarray(np.clip(np.round(values), 0, 255), np.uint8)


def jpeg(values: npt.NDArray[np.float32], quality: int) -> Picture:
    _, data = cv2.imencode(".jpg", bytes_of(values), [cv2.IMWRITE_JPEG_QUALITY, quality])
    return np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8)


@pytest.mark.parametrize("change", ["sd 8", "sd 15", "jpeg 50", "jpeg 90", "blur 1", "blur 3", "all three"])
@pytest.mark.parametrize("size", [(480, 640), (1080, 1920)])
def test_grain_blur_and_compression_do_not_hide_patches(change: str, size: tuple[int, int]) -> None:
    for seed in range(2):
        plain = squares(size[0] // 8, *size, seed)
        grain = np.random.default_rng(seed).normal(size=plain.shape).astype(np.float32)
        match change.split():
            case "sd", strength:
                picture = bytes_of(plain + int(strength) * grain)
            case "jpeg", quality:
                picture = jpeg(plain, int(quality))
            case "blur", radius:
                picture = bytes_of(np.asarray(cv2.GaussianBlur(plain, (0, 0), int(radius)), np.float32))
            case _:
                picture = jpeg(np.asarray(cv2.GaussianBlur(plain, (0, 0), 1), np.float32) + 8 * grain, 75)
        assert is_patchwork(picture)


@pytest.mark.parametrize("side", [64, 224, 480])
def test_a_few_flat_patches_are_flat(side: int) -> None:
    colours = np.random.default_rng(side).integers(0, 256, (4, 3)).astype(np.float32)
    for down, across in ((side, side), (side, side // 3), (side // 2, side // 2 + 3)):
        picture = np.broadcast_to(colours[0], (side, side, 3)).copy()
        picture[:down, across:], picture[down:, :across], picture[down:, across:] = colours[1:]
        assert is_flat(bytes_of(picture))
        # Half of the picture may be the ground of the rest; a quarter may not.
        assert is_patchwork(bytes_of(picture)) is (down < side)


def test_a_textured_thing_on_a_flat_ground_is_not_flat() -> None:
    picture = np.full((240, 320, 3), 120, np.float32)
    rng = np.random.default_rng(0)
    picture[20:220, 30:290] = cv2.GaussianBlur(rng.normal(size=(200, 260, 3)) * 200 + 120, (0, 0), 3)
    assert not is_flat(bytes_of(picture))
    # The same share of the picture in a plain colour is a patch.
    picture[20:220, 30:290] = (200, 30, 90)
    assert is_flat(bytes_of(picture))


@pytest.mark.parametrize(("period", "size"), [(4, (240, 320)), (8, (480, 640)), (16, (1080, 1920))])
def test_fine_stripes_show_nothing(period: int, size: tuple[int, int]) -> None:
    for axis in (0, 1):
        places = np.arange(size[axis]) // period % 2
        plane = places[:, None] if axis == 0 else places[None]
        picture = np.broadcast_to(np.where(plane[..., None] > 0, (200, 40, 90), (30, 120, 220)), (*size, 3))
        picture = np.asarray(picture, np.uint8)
        assert not shows_something(picture)


@pytest.mark.parametrize("side", [48, 64, 120, 240, 480])
def test_blocks_of_a_jpeg_show_nothing_alone(side: int) -> None:
    rng = np.random.default_rng(side)
    size = (side, side * 4 // 3, 3)
    soft = cv2.GaussianBlur(rng.normal(size=size), (0, 0), 0.08 * side)
    blobs = 128 + 40 * (soft - soft.mean()) / soft.std()
    across = np.broadcast_to(np.linspace(20, 235, size[1])[None, :, None], size)
    noise_and_blobs = (120 + 30 * rng.normal(size=size), blobs)
    # With at most eight blocks per side, the steps between those of noise and of blobs are as uneven as those of small
    # photographs, which must not be lost.
    for plain in (across + 8 * rng.normal(size=(side, size[1], 1)), *(noise_and_blobs if side > 64 else ())):
        picture = jpeg(np.asarray(plain, np.float32), 10)
        assert not shows_something(picture)
        assert is_coarse_noise(picture) is (structure(picture) >= SOMETHING)


def test_a_thing_under_strong_compression_shows_something() -> None:
    picture = np.random.default_rng(0).normal(120, 12, (240, 320, 3))
    cv2.circle(picture, (200, 90), 40, (220, 40, 30), -1)
    assert shows_something(jpeg(picture.astype(np.float32), 10))


def draw_lit_things(side: int, seed: int) -> npt.NDArray[np.float32]:
    """Draw a box and a ball under film grain, in light that changes across the picture, as in a small photograph."""
    rng = np.random.default_rng(seed)
    down, across = np.mgrid[:side, :side] / side
    picture = np.stack([120 + 60 * across, 130 + 50 * down, 110 + 20 * across], axis=2)
    x, y = rng.uniform(0.1, 0.5, 2)
    picture[(across > x) & (across < x + 0.25) & (down > y) & (down < y + 0.25)] = (200, 40, 40)
    x, y = rng.uniform(0.6, 0.8, 2)
    picture[(across - x) ** 2 + (down - y) ** 2 < 0.02] = (40, 160, 60)
    return np.asarray(picture + rng.normal(0, 2, picture.shape), np.float32)


@pytest.mark.parametrize("quality", [10, 20, 30, 50])
@pytest.mark.parametrize("side", [48, 56, 64])
def test_small_scenes_under_strong_compression_show_something(side: int, quality: int) -> None:
    pictures = [jpeg(draw_lit_things(side, seed), quality) for seed in range(10)]
    assert any(block_steps(picture) >= VISIBLE_GRID for picture in pictures)
    assert all(map(shows_something, pictures))


def draw_sprite(cells: int, margin: int, seed: int) -> Picture:
    """Draw cells of 8 px in random strong colours on a light ground that is `margin` cells wide on every side."""
    sprite = np.full((cells, cells, 3), 235, np.uint8)
    inside = slice(margin, cells - margin)
    sprite[inside, inside] = np.random.default_rng(seed).integers(0, 256, (cells - 2 * margin,) * 2 + (3,))
    return sprite.repeat(8, axis=0).repeat(8, axis=1)


@pytest.mark.parametrize(("cells", "margin"), [(9, 1), (9, 2), (16, 3), (16, 4)])
def test_a_drawing_with_parts_on_a_grid_of_eight_pixels_shows_something(cells: int, margin: int) -> None:
    for seed in range(8):
        picture = draw_sprite(cells, margin, seed)
        assert block_steps(picture) == np.inf
        assert shows_something(picture)


def test_a_drawing_on_a_grid_is_not_only_blocks_of_a_jpeg() -> None:
    # The cells of a sprite differ as evenly as blocks of noise.
    pictures = [draw_sprite(16, 2, seed) for seed in range(8)]
    assert not any(map(is_only_blocks, pictures))
    assert sum(map(shows_something, pictures)) >= 4


def test_a_grid_is_seen_only_where_it_was_left() -> None:
    plain = 120 + 30 * np.random.default_rng(0).normal(size=(240, 320, 3))
    assert block_steps(bytes_of(plain.astype(np.float32))) < 1.1
    strong = jpeg(plain.astype(np.float32), 10)
    assert block_steps(strong) > VISIBLE_GRID
    # A picture that is cropped beside the block grid has the grid's lines elsewhere.
    assert block_steps(np.ascontiguousarray(strong[3:, 5:])) < 1
    assert block_steps(strong[:15, :15]) == 0


def test_bands_of_a_gradient_show_nothing() -> None:
    for size in ((64, 85), (240, 320), (480, 640)):
        down, across = np.mgrid[: size[0], : size[1]]
        level = 250 * (0.3 * down / size[0] + 0.7 * across / size[1])
        picture = np.broadcast_to((level // 16 * 16)[..., None], (*size, 3)).astype(np.uint8)
        assert not shows_something(picture)


@pytest.mark.parametrize("size", [(48, 64), (61, 203), (1100, 40)])
def test_block_steps_in_integers_equal_those_in_floats(size: tuple[int, int]) -> None:
    picture = noise("colours", *size, 3)
    values = cv2.cvtColor(picture, cv2.COLOR_RGB2YCrCb)
    y0 = max(0, size[0] - 1024) // 2 // 8 * 8
    part = values[y0 : y0 + 1024].astype(np.float32)
    ratios = []
    for axis in (0, 1):
        steps = np.abs(np.diff(part, axis=axis)).sum(axis=2).mean(axis=1 - axis)
        on_grid = np.arange(len(steps)) % 8 == 7
        ratios.append(float((steps[on_grid].mean() + 0.1) / (steps[~on_grid].mean() + 0.1)))
    assert block_steps(picture) == min(ratios)


def test_the_largest_step_equals_that_of_reductions_over_both_axes() -> None:
    picture = cv2.GaussianBlur(noise("enlarged", 96, 120, 5), (0, 0), 2)
    values = picture.astype(np.float32)
    small = cv2.resize(values, (160, 128), interpolation=cv2.INTER_AREA) if min(picture.shape[:2]) > 128 else values
    spread = np.ptp(small, axis=(0, 1)).max()
    assert largest_step(picture) == max(np.abs(np.diff(small, axis=axis)).max() for axis in (0, 1)) / spread


def test_smooth_surfaces_in_light_are_not_flat() -> None:
    picture = item("Relative_Reflectance", 4, 3).images[0][90:270, 240:]
    enlarged = np.asarray(cv2.resize(picture, (480, 360), interpolation=cv2.INTER_LANCZOS4), np.uint8)
    assert not is_flat(enlarged)
    assert support_by_patches(enlarged) == 1


def test_few_bands_of_a_gradient_show_nothing_and_a_faint_disc_on_a_gradient_does() -> None:
    across = np.broadcast_to(np.linspace(40, 130, 320, dtype=np.float32)[None, :, None], (240, 320, 3))
    bands = bytes_of(across // 20 * 20)
    assert monotonicity(bands) > 0.99
    assert not shows_something(bands)
    disc = cv2.circle(np.zeros((240, 320), np.float32), (160, 120), 40, 1.0, -1)[..., None]
    assert shows_something(bytes_of(across + 10 * disc))


def test_bare_blocks_of_a_compressed_gradient_show_nothing() -> None:
    across, grain = np.mgrid[:240, :320][1] / 320, np.random.default_rng(0).normal(size=(240, 320, 1))
    picture = jpeg((100 + 30 * across[..., None] + 3 * grain).repeat(3, axis=2).astype(np.float32), 10)
    assert block_steps(picture) > BARE_GRID
    assert structure(picture) >= SOMETHING
    assert not shows_something(picture)


def test_a_small_picture_supports_less_of_a_confidence() -> None:
    supports = [support_by_size(np.zeros((side, 4 * side, 3), np.uint8)) for side in (1, 64, 112, 160, 900)]
    assert supports == pytest.approx([SMALL_SUPPORT, SMALL_SUPPORT, (1 + SMALL_SUPPORT) / 2, 1, 1])


def test_flat_patches_support_no_confidence_and_a_lit_scene_all_of_it() -> None:
    assert support_by_patches(bytes_of(squares(60, 240, 320, 0))) == 0
    assert support_by_patches(bytes_of(draw_lit_things(240, 0))) == 1


def test_soft_blobs_support_no_confidence_and_a_lit_scene_all_of_it() -> None:
    soft = cv2.GaussianBlur(squares(20, 160, 160, 1), (0, 0), 4)
    assert shows_something(bytes_of(np.asarray(soft, np.float32)))
    assert support_by_edges(bytes_of(np.asarray(soft, np.float32))) == 0
    assert 0 < support_by_edges(bytes_of(np.asarray(cv2.GaussianBlur(squares(20, 160, 160, 1), (0, 0), 2)))) < 1
    assert support_by_edges(bytes_of(draw_lit_things(240, 0))) == 1


def draw_pattern(kind: str, height: int, width: int) -> Picture:
    """Draw a regular pattern of two colours, with a period of 20 px."""
    down, across = np.mgrid[:height, :width]
    match kind:
        case "squares":
            place = (down // 10 + across // 10) % 2
        case "dots":
            place = np.hypot(down % 20 - 10, across % 20 - 10) < 6
        case "bricks":
            place = (down % 10 < 2) | ((across + down // 10 % 2 * 10) % 20 < 2)
        case _:
            place = (down + across) // 10 % 2
    return np.asarray(np.array([(230, 200, 90), (40, 60, 120)])[place.astype(int)], np.uint8)


@pytest.mark.parametrize("kind", ["squares", "dots", "bricks", "stripes"])
def test_a_pattern_repeats_itself_and_a_scene_does_not(kind: str) -> None:
    for size in ((64, 64), (240, 320), (100, 700)):
        pattern = draw_pattern(kind, *size)
        assert repeats(pattern)
        assert repeats(jpeg(pattern.astype(np.float32), 50))
    assert not repeats(bytes_of(draw_lit_things(240, 0)))
    assert not repeats(bytes_of(squares(20, 240, 320, 0)))
    assert not repeats(np.full((240, 320, 3), 128, np.uint8))


@pytest.mark.parametrize("share", [0.03, 0.05, 0.08])
def test_plain_margins_beside_a_pole_do_not_repeat_themselves(share: float) -> None:
    picture, half = np.full((240, 320, 3), 180, np.uint8), int(share * 160)
    picture[:, 160 - half : 160 + half] = 40
    picture[118:122] = 90
    assert not repeats(picture)


def draw_wall(seed: int, variation: float) -> Picture:
    """Draw a wall of rows of bricks whose tones vary with this standard deviation, in grey levels."""
    rng, wall = np.random.default_rng(seed), np.full((480, 640, 3), 185, np.float32)
    for row, top in enumerate(range(0, 480, 24)):
        for left in range(-row % 2 * 36, 640, 72):
            wall[top + 2 : top + 23, max(0, left + 2) : left + 70] = rng.normal((150, 80, 60), variation)
    return bytes_of(wall)


def draw_fence(seed: int) -> Picture:
    """Draw a fence of equal slats in front of a sky and a field, seen from the front."""
    rng, height = np.random.default_rng(seed), np.linspace(0, 1, 480, dtype=np.float32)[:, None, None]
    view = (1 - height) * (150, 190, 230) + height * (90, 130, 60) + np.zeros((1, 640, 1))
    for left in range(5, 640, 32):
        view[80:, left : left + 16] = rng.normal((225, 222, 215), 4)
    view[160:174] = 230
    return bytes_of(view.astype(np.float32))


def test_walls_with_uneven_bricks_and_a_fence_do_not_repeat_themselves() -> None:
    assert repeats(draw_wall(0, 0))
    for seed in range(2):
        assert not repeats(draw_wall(seed, 15))
        assert not repeats(draw_fence(seed))


def test_an_even_pattern_has_edges_and_noise_and_one_colour_have_none() -> None:
    lines = np.where(np.arange(240) % 40 < 4, 200, 40)[None, :, None].repeat(120, axis=0).repeat(3, axis=2)
    assert has_edges(lines.astype(np.uint8))
    noise = np.random.default_rng(0).integers(0, 256, (120, 240, 3)).astype(np.float32)
    level = np.full((120, 240, 3), 90, np.uint8)
    for picture in (bytes_of(noise), jpeg(noise, 10), level, lines[:15].astype(np.uint8)):
        assert not has_edges(picture)
