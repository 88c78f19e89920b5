"""Numbers of the table "How images are prepared for networks" in docs/specialists.md, row by row.

test_authors_inputs.toml has a row for each network: the picture's size, the network's input, and how it is made. A
picture of noise, in which every change of size, padding, mean, deviation, interpolation or smoothing alters most
pixels, goes through the tool's own preparation and through the steps of the row.
"""

import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from hybrid.tool import Pixels
from tests.tables import stored
from tests.tools.test_network_inputs import reaching
from tests.tools.tiny_checkpoints import Checkpoints
from tools._shared.args import Spot
from tools._shared.dense_features import DenseFeatures
from tools._shared.local_features import MAX_POINTS
from tools._shared.local_features import _input as local_input
from tools._shared.loftr import _input as loftr_input
from tools._shared.transformers_matchers import TransformersMatcher
from tools.attributes import TextScorer
from tools.depth.models import DepthModel
from tools.detection.models import Detector
from tools.forensics.models import SyntheticDetector
from tools.ocr.models import PaddleReader
from tools.reflectance import IntrinsicModel
from tools.saliency.models import Attention
from tools.segmentation.models import MaskOutput, SegmentationPrompt, segmenter
from tools.semantic_correspondence.models import DiffusionFeatures
from tools.similarity.models import ImageFeatures

FAMILIES: dict[str, str] = stored(__file__, "families")
# Words in code type of the table "What loads" that are tools or files.
OTHER_NAMES = {"depth", "segmentation", "detection", "semantic_correspondence", "jigsaw", "saliency", "similarity"}
OTHER_NAMES |= {"attributes", "correspondence", "motion", "ocr", "reflectance", "forensics", "model_type"}
ROWS: dict[str, dict[str, Any]] = stored(__file__, "networks")
PAGE = (Path(__file__).parents[2] / "docs" / "specialists.md").read_text("utf-8")
# Largest difference due to rounding, in levels of 255.
ROUNDING = 1.6
SCALINGS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
Levels = npt.NDArray[np.float64]


def noise(height: int, width: int) -> Pixels:
    """Return cells of 2 px in random colours: bicubic, bilinear and unsmoothed scaling differ by tens of levels."""
    small = np.random.default_rng(0).integers(20, 236, ((height + 1) // 2, (width + 1) // 2, 3))
    return small.repeat(2, axis=0).repeat(2, axis=1)[:height, :width].astype(np.uint8)


def scaled(pixels: Levels, size: Sequence[int], method: str) -> Levels:
    """Return an image (h, w, 3), 0..255, at `size` (H, W), channel by channel, without intermediate rounding."""
    import torch

    height, width = size
    if method == "area":
        return np.asarray(cv2.resize(pixels.astype(np.uint8), (width, height), interpolation=cv2.INTER_AREA), float)
    if method == "gaussian, bilinear":
        # Smooth like skimage's `resize` with anti_aliasing: a deviation of half a pixel per unit of reduction beyond 1.
        sigma = [max(0.0, (previous / after - 1) / 2) for previous, after in zip(pixels.shape[:2], size, strict=True)]
        if max(sigma) > 0:
            pixels = cv2.GaussianBlur(pixels, (0, 0), sigma[1] or 0.01, sigmaY=sigma[0] or 0.01)
        method = "bilinear, not smoothed"
    if method.endswith((", not smoothed", ", corners on corners")):
        values = torch.from_numpy(pixels.transpose(2, 0, 1)[None].copy())
        corners = method.endswith("corners on corners")
        mode = method.split(",")[0]
        result = torch.nn.functional.interpolate(values, (height, width), mode=mode, align_corners=corners)
        return np.asarray(result[0].numpy().transpose(1, 2, 0))
    layers = [
        np.asarray(Image.fromarray(pixels[..., channel].astype(np.float32)).resize((width, height), SCALINGS[method]))
        for channel in range(3)
    ]
    return np.clip(np.stack(layers, axis=2).astype(np.float64), 0, 255)


def by_the_row(row: dict[str, Any], pixels: Pixels, seen: Sequence[int]) -> Levels:
    """Compute the network's input from the numbers of a row, (h, w, 3) in levels of 255."""
    limit = row.get("limit", max(pixels.shape))
    factor = min(1.0, limit / max(pixels.shape[:2]))
    values = pixels.astype(np.float64)
    if factor < 1:
        values = scaled(values, [max(1, round(side * factor)) for side in pixels.shape[:2]], "area")
    height, width = values.shape[:2]
    padding = row.get("padding", "none")
    if padding == "square":
        pads = ((0, max(height, width) - height), (0, max(height, width) - width), (0, 0))
        values = np.pad(values, pads, constant_values=row["level"])
    elif padding == "mirrored":
        down, across = (int(np.sqrt(side / 2) * 3) for side in (height, width))
        values = np.pad(values, ((down, down), (across, across), (0, 0)), mode="reflect")
    if "short_side" in row:
        factor = row["short_side"] / min(height, width)
        values = scaled(values, [int(side * factor) for side in (height, width)], row["scaling"])
        top, left_edge = (round((side - cut) / 2) for side, cut in zip(values.shape[:2], seen, strict=True))
        return values[top : top + seen[0], left_edge : left_edge + seen[1]]
    if padding == "black to 14":
        top, left_edge = ((side - previous) // 2 for side, previous in zip(seen, (height, width), strict=True))
        values = np.pad(values, ((top, seen[0] - height - top), (left_edge, seen[1] - width - left_edge), (0, 0)))
    elif row["scaling"] != "none":
        values = scaled(values, seen, row["scaling"])
    if row.get("grey"):
        values = (values @ np.array([0.2989, 0.587, 0.114]))[..., None].repeat(3, axis=2)
    return values


Prepared = tuple[Any, Any, Callable[[], Any]]


def prepared_by(tool: str, folder: Path, pixels: Pixels) -> Prepared:
    """Return a tool's model, the tensor (1, C, h, w) that it makes from a picture, and a call that runs the network."""
    if tool == "depth":
        depth = DepthModel(str(folder), "cpu")
        image = depth.prepare(pixels)
        return depth, image.values, lambda: depth.predict([image])
    if tool == "detection":
        detector = Detector(str(folder), "cpu")
        prepared = detector.prepare(pixels, ["dog"])
        return detector, prepared.image["pixel_values"], lambda: detector.predict([prepared])
    if tool in ("segmentation", "segmentation by words"):
        cutter: Any = segmenter(str(folder), "cpu")
        prompt = (
            SegmentationPrompt(words="dog") if tool.endswith("words") else SegmentationPrompt(on=(Spot(None, 5, 5),))
        )
        placed = cutter.prepare(pixels, prompt)
        return cutter, placed.values, lambda: cutter.predict([placed])
    if tool == "attributes":
        scorer = TextScorer(str(folder), "cpu")
        text = scorer.prepare(pixels)
        return scorer, text["pixel_values"], lambda: scorer.predict([text], [["dog"]])
    if tool == "forensics":
        judge = SyntheticDetector(str(folder), "cpu")
        batch = judge.prepare([pixels])
        return judge, batch, lambda: judge.predict(batch)
    if tool == "similarity":
        features = ImageFeatures(str(folder), "cpu")
        values = features.prepare(pixels)
        return features, values, lambda: features.predict([values])
    if tool == "correspondence":
        matcher = TransformersMatcher(str(folder), "cpu")
        return matcher, matcher.prepare((pixels, pixels))[:, 0], lambda: None
    dense: Any = {"semantic": DenseFeatures, "diffusion": DiffusionFeatures, "saliency": Attention}[tool](
        str(folder), "cpu"
    )
    full = dense.prepare(pixels)
    return dense, full.values, lambda: dense.predict([full])


def with_processor(folder: Path, settings: dict[str, Any], target: Path) -> Path:
    """Return a copy of a checkpoint whose image processor has the published settings."""
    shutil.copytree(folder, target, dirs_exist_ok=True)
    for name in ("processor_config.json", "preprocessor_config.json"):
        if (path := target / name).is_file():
            config = json.loads(path.read_text("utf-8"))
            config.get("image_processor", config).update(settings)
            path.write_text(json.dumps(config), "utf-8")
            return target
    raise FileNotFoundError(f"{folder} has no configuration of an image processor")


def shown_by(row: dict[str, Any], checkpoints: Checkpoints, pixels: Pixels, target: Path) -> Any:
    """Return the tensor (1, C, h, w) that the tool of a row makes from a picture."""
    if row["tool"] == "aliked or disk":
        return local_input(pixels)
    if row["tool"] == "loftr":
        return loftr_input(pixels)
    if row["tool"] == "ocr":
        reader = PaddleReader(str(checkpoints("ocr")), "cpu")
        with reaching(reader._finder.model) as calls:
            reader.read(pixels)
        return calls[0]["pixel_values"]
    if row["tool"] == "reflectance":
        pytest.importorskip("diffusers")
        albedo = IntrinsicModel(str(checkpoints("marigold_iid")), "cpu")
        with reaching(albedo._pipeline.vae.encoder) as calls:
            albedo.albedo(pixels, 0)
        return next(iter(calls[0].values()))
    if row["tool"] == "diffusion":
        pytest.importorskip("diffusers")
    folder = checkpoints(row["checkpoint"])
    if row.get("processor"):
        folder = with_processor(folder, row["processor"], target)
    model, values, _ = prepared_by(row["tool"], folder, pixels)
    return joined(values, model.prepare(pixels)["spatial_shapes"][0], row["patches"]) if "patches" in row else values


def joined(values: Any, shape: Any, side: int) -> Any:
    """Return a picture (1, 3, h, w) from its patches (1, n, side * side * 3), of which `shape` are rows and columns."""
    rows, columns = (int(count) for count in shape)
    patches = values[0, : rows * columns].reshape(rows, columns, side, side, 3)
    return patches.permute(4, 0, 2, 1, 3).reshape(1, 3, rows * side, columns * side)


@pytest.mark.parametrize("name", ROWS)
def test_a_network_is_shown_what_its_row_says(things_checkpoint: Checkpoints, tmp_path: Path, name: str):
    row = ROWS[name]
    for number, (picture, seen) in enumerate(row["shown"]):
        pixels = noise(*picture)
        values = shown_by(row, things_checkpoint, pixels, tmp_path / str(number))[0].float().numpy()
        assert list(values.shape[-2:]) == list(seen), picture
        mean, deviation = np.array(row["mean"]), np.array(row["std"])
        expected = by_the_row(row, pixels, seen) / 255
        if row.get("grey"):
            expected = expected[..., : values.shape[0]]
        if row.get("order") == "BGR":
            expected = expected[..., ::-1]
        levels = (values.transpose(1, 2, 0) * deviation + mean) * 255
        differences = np.abs(levels - 255 * expected)
        edge = row.get("edge", 0)
        inner = differences[edge : differences.shape[0] - edge, edge : differences.shape[1] - edge]
        assert np.quantile(inner, 0.999) <= row.get("levels", ROUNDING), picture


NETWORK: dict[str, Callable[[Any], Any]] = {
    "forensics": lambda model: model._model,
    "diffusion": lambda model: model._unet,
    "similarity": lambda model: getattr(model._checkpoint.model, "vision_model", model._checkpoint.model),
    "segmentation": lambda model: model._checkpoint.model.vision_encoder,
    "segmentation by words": lambda model: model._model._checkpoint.model,
}


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "passes" in row])
def test_a_network_sees_a_picture_as_often_as_its_row_says(things_checkpoint: Checkpoints, name: str):
    row = ROWS[name]
    if row["tool"] == "diffusion":
        pytest.importorskip("diffusers")
    model, _, run = prepared_by(row["tool"], things_checkpoint(row["checkpoint"]), noise(90, 120))
    network = NETWORK.get(row["tool"], lambda model: model._checkpoint.model)(model)
    with reaching(network) as calls:
        run()
    assert sum(len(next(iter(call.values()))) for call in calls) == row["passes"]


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if "threshold" in row])
def test_a_tool_counts_from_the_threshold_of_its_row(things_checkpoint: Checkpoints, name: str):
    row = ROWS[name]
    model, _, _ = prepared_by(row["tool"], things_checkpoint(row["checkpoint"]), noise(90, 120))
    if row["tool"] == "detection":
        assert model.family.threshold == row["threshold"]
        return
    pixels = noise(90, 120)
    # The logit of a mask is 0 at a probability of 0.5.
    logit = float(np.log(row["threshold"] / (1 - row["threshold"])))
    for above in (-0.01, 0.01):
        size = (90, 120) if row["tool"] == "segmentation" else None
        mask, _ = model.mask(pixels, MaskOutput(np.full((32, 32), logit + above, np.float32), 0.5, size))
        assert mask.all() == (above > 0)


@pytest.mark.parametrize(
    ("place", "value"), [(place, value) for row in ROWS.values() for place, value in row.get("defaults", {}).items()]
)
def test_a_default_of_a_library_is_what_the_page_says(place: str, value: float):
    """The page states a library's default: `module:Class.attribute` of a configuration, or an argument's default as
    `module:Class(argument)`."""
    import importlib
    import inspect

    module, _, name = place.partition(":")
    if "(" in name:
        function, argument = name.rstrip(")").split("(")
        default = inspect.signature(getattr(importlib.import_module(module), function)).parameters[argument].default
    else:
        kind, attribute = name.split(".")
        default = getattr(getattr(importlib.import_module(module), kind)(), attribute)
    assert default == value


def test_extractors_keep_as_many_points_as_the_page_says():
    assert f"{MAX_POINTS:,}" in row_of("ALIKED")


def row_of(name: str) -> str:
    """Return the row of the page's table that begins with a name."""
    section = PAGE.split("## How images are prepared for networks")[1].split("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith(f"| {name}")]
    assert len(rows) == 1, f"docs/specialists.md has {len(rows)} rows of {name}"
    return rows[0]


@pytest.mark.parametrize("name", ROWS)
def test_the_page_states_the_numbers_of_a_row(name: str):
    cells = [cell.strip() for cell in row_of(ROWS[name]["page"]).strip("|").split("|")]
    _, _, _, our_rule, source = cells
    for stated in ROWS[name]["stated"]:
        assert stated in our_rule, (name, stated)
    # A source is a repository at a commit, or the statement that the authors' code was not read.
    assert re.search(r"[\w.-]+/[\w.-]+@[0-9a-f]{7} `", source) or "authors' code not read" in source


def test_every_family_that_loads_has_a_row():
    section = PAGE.split("## What loads")[1].split("\n## ")[0]
    loaded = set(re.findall(r"`([a-z0-9_-]+)`", section)) - OTHER_NAMES
    assert loaded == set(FAMILIES)
    for name in FAMILIES.values():
        row_of(name)
