"""Marigold intrinsics through diffusers: a small checkpoint in the published layout, on real pictures."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hybrid.benchmarks.blink.sample import item
from hybrid.core.errors import ToolError, WeightsError
from hybrid.tool import Pixels, Request
from tests.tools.tiny_checkpoints import Checkpoints, started
from tools._shared.args import PointArg
from tools.reflectance import TOOL, IntrinsicModel, ReflectanceArgs


@pytest.fixture(scope="module")
def checkpoint(things_checkpoint: Checkpoints) -> Path:
    return things_checkpoint("marigold_iid")


@pytest.fixture(scope="module")
def model(checkpoint: Path) -> IntrinsicModel:
    return IntrinsicModel(str(checkpoint), "cpu")


@pytest.fixture
def copy(checkpoint: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(checkpoint, tmp_path / "copy"))


@pytest.fixture(scope="module")
def scene() -> Pixels:
    return item("Relative_Reflectance", 0, 3).images[0]


def change(folder: Path, part: str, mode: Callable[[dict[str, object]], dict[str, object]]) -> None:
    from safetensors.torch import load_file, save_file

    (path,) = (folder / part).glob("*.safetensors")
    save_file(mode(load_file(path)), path, metadata={"format": "pt"})


def change_index(folder: Path, **entries: object) -> None:
    path = folder / "model_index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def test_albedo_has_the_form_of_the_picture_and_depends_on_the_seed_alone(model: IntrinsicModel, scene: Pixels):
    first, second, other = (model.albedo(scene, seed) for seed in (0, 0, 1))
    assert first.shape == scene.shape
    assert first.dtype == np.float32
    assert 0 <= first.min() < first.max() <= 1
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
    assert model.version.startswith("marigold-iid@")
    assert model.albedo(np.tile(scene[:200, :300], (3, 4, 1)), 0).shape == (384, 768, 3)
    with pytest.raises(ToolError, match="at least 16 px a side"):
        model.albedo(scene[:15], 0)


def test_two_points_are_compared_in_the_albedo(checkpoint: Path, scene: Pixels):
    backend = started("reflectance", checkpoint)
    points = (PointArg(x=30, y=40, label="A"), PointArg(x=200, y=100, label="B"))
    (result,) = backend.run([Request((scene,), ReflectanceArgs(points=points))])
    levels = [point["log_reflectance"] for point in result.data["points"]]
    assert result.data["darker_index"] == (None if result.data["same"] else int(levels[1] < levels[0]))
    assert sum(result.data["probability_0_1"].values()) == pytest.approx(1)
    assert result.pictures[0].pixels.shape == scene.shape
    assert backend.version.startswith(f"{TOOL.backend('learned').version}+marigold-iid@")


def test_tensors_of_another_shape_or_too_many_are_refused(copy: Path):
    change(copy, "vae", lambda tensors: {**tensors, "decoder.conv_in.bias": tensors["decoder.conv_in.bias"][:-1]})
    with pytest.raises(WeightsError, match=r"1 of another shape \(decoder.conv_in.bias\)"):
        IntrinsicModel(str(copy), "cpu")
    change(copy, "unet", lambda tensors: {**tensors, "extra.bias": tensors["conv_out.bias"].clone()})
    with pytest.raises(WeightsError, match=r"1 unexpected \(extra.bias\)"):
        IntrinsicModel(str(copy), "cpu")


def test_the_names_in_published_files_are_read(model: IntrinsicModel, copy: Path, scene: Pixels):
    """Files on the hub use older names of the VAE's attention and of the text encoder's tensors."""
    old = {"to_q": "query", "to_k": "key", "to_v": "value", "to_out.0": "proj_attn"}

    def older(key: str) -> str:
        parts = [(f".attentions.0.{new}.", f".attentions.0.{name}.") for new, name in old.items()]
        return next((key.replace(new, name) for new, name in parts if new in key), key)

    change(copy, "vae", lambda tensors: {older(key): value for key, value in tensors.items()})
    change(copy, "text_encoder", lambda tensors: {f"text_model.{key}": value for key, value in tensors.items()})
    renamed = IntrinsicModel(str(copy), "cpu")
    assert np.array_equal(renamed.albedo(scene, 0), model.albedo(scene, 0))
    assert renamed.version != model.version


def test_what_the_index_says_must_fit(copy: Path):
    properties = json.loads((copy / "model_index.json").read_text())["target_properties"]
    change_index(copy, target_properties={**properties, "target_names": ["shading", "material"]})
    with pytest.raises(WeightsError, match=r"names the targets \['shading', 'material'\]; albedo is wanted"):
        IntrinsicModel(str(copy), "cpu")
    change_index(copy, target_properties={**properties, "target_names": ["albedo"]})
    with pytest.raises(WeightsError, match=r"predicts 8 channels, model_index\.json names 1 targets of 4"):
        IntrinsicModel(str(copy), "cpu")
    change_index(copy, target_properties={**properties, "albedo": {"prediction_space": "stack"}})
    with pytest.raises(WeightsError, match="albedo in 'stack'"):
        IntrinsicModel(str(copy), "cpu")
    change_index(copy, _class_name="MarigoldDepthPipeline")
    with pytest.raises(WeightsError, match="names 'MarigoldDepthPipeline'; supported of diffusers: MarigoldIntr"):
        IntrinsicModel(str(copy), "cpu")
    (copy / "model_index.json").write_text("{")
    with pytest.raises(WeightsError, match=r"model_index\.json is not JSON"):
        IntrinsicModel(str(copy), "cpu")


@pytest.mark.parametrize("part", ["unet", "tokenizer", "scheduler"])
def test_an_absent_part_is_named(copy: Path, part: str):
    shutil.rmtree(copy / part)
    with pytest.raises(WeightsError, match=f"weights absent: .*copy/{part}"):
        IntrinsicModel(str(copy), "cpu")


def test_linear_albedo_is_left_linear(model: IntrinsicModel, copy: Path, scene: Pixels):
    properties = json.loads((copy / "model_index.json").read_text())["target_properties"]
    change_index(copy, target_properties={**properties, "albedo": {"prediction_space": "linear"}})
    linear = IntrinsicModel(str(copy), "cpu").albedo(scene, 0)
    assert linear**2.2 == pytest.approx(model.albedo(scene, 0), abs=1e-6)
