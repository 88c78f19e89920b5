"""A folder of weights is data: nothing in it leads outside of it or runs."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.errors import WeightsError
from hybrid.models.in_process.generation import load as load_vlm
from hybrid.plugins.weights import find_weights, look_through
from tests.tables import cases


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a small safetensors file and a configuration."""
    import torch
    from safetensors.torch import save_file

    location = tmp_path / "weights"
    location.mkdir()
    save_file({"a": torch.zeros(2)}, location / "model.safetensors")
    (location / "config.json").write_text('{"model_type": "depth_anything"}')
    return location


def index(folder: Path, *shards: object) -> None:
    content = {"metadata": {}, "weight_map": {f"tensor{place}": shard for place, shard in enumerate(shards)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content))


def test_a_plain_folder_and_the_hubs_own_are_taken(folder: Path, tmp_path: Path) -> None:
    index(folder, "model.safetensors", "model-00002-of-00002.safetensors")
    assert find_weights(str(folder), download=False) == folder
    blobs = tmp_path / "models--a--b" / "blobs"
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    shutil.copy(folder / "model.safetensors", blobs / "0123")
    (snapshot / "model.safetensors").symlink_to("../../blobs/0123")
    assert find_weights(str(snapshot), download=False) == snapshot


@pytest.mark.parametrize(*cases(__file__, "test_an_index_that_names_another_place_or_format_is_refused", list))
def test_an_index_that_names_another_place_or_format_is_refused(folder: Path, shard: object) -> None:
    index(folder, "model.safetensors", shard)
    with pytest.raises(
        WeightsError, match=r"model.safetensors.index.json names .*, which is not a .safetensors file next"
    ):
        find_weights(str(folder), download=False)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weight_map": []}', "[" * 100_000, "\x00"])
def test_an_index_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "diffusion_pytorch_model.safetensors.index.json").write_text(text)
    with pytest.raises(WeightsError, match=r"sub/.*index.json (is not JSON|lists no weight files)"):
        find_weights(str(folder), download=False)


def test_adapters_are_refused(folder: Path) -> None:
    """Adapters are refused: with the package peft installed, transformers would load the checkpoint that they name
    instead."""
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "/somewhere/else"}')
    with pytest.raises(WeightsError, match="adapters are not loaded"):
        find_weights(str(folder), download=False)


def test_a_kernel_of_the_hub_is_refused(folder: Path) -> None:
    for config in (
        {"attn_implementation": "evil/kernel"},
        {"vision_config": {"_attn_implementation": "evil/kernel@main"}},
    ):
        (folder / "config.json").write_text(json.dumps(config))
        with pytest.raises(WeightsError, match=r"config.json: .*attn_implementation names code to download and run"):
            look_through(folder, "w")
    (folder / "config.json").write_text('{"attn_implementation": "sdpa"}')
    look_through(folder, "w")


def test_a_pipe_in_place_of_weights_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "more.safetensors")
    with pytest.raises(WeightsError, match=r"more.safetensors is not a file"):
        find_weights(str(folder), download=False)


@pytest.mark.parametrize("model_type", ["unheard_of", "depth_anything"])
def test_code_in_a_checkpoint_is_not_run(folder: Path, tmp_path: Path, model_type: str) -> None:
    marker = tmp_path / "was run"
    (folder / "evil.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Evil:\n    pass\n")
    names = dict.fromkeys(("AutoConfig", "AutoModel", "AutoModelForDepthEstimation", "AutoProcessor"), "evil.Evil")
    names |= dict.fromkeys(("AutoImageProcessor", "AutoTokenizer", "AutoModelForImageTextToText"), "evil.Evil")
    facts = {"model_type": model_type, "auto_map": names, "processor_class": "Evil", "image_processor_type": "Evil"}
    for name in ("config.json", "preprocessor_config.json", "processor_config.json", "tokenizer_config.json"):
        (folder / name).write_text(json.dumps(facts))
    for load in (_load_for_a_tool, lambda location: load_vlm(Path(location), "cpu", "float32")):
        with pytest.raises(WeightsError):
            load(str(folder))
    assert not marker.exists()


def _load_for_a_tool(location: str) -> Any:
    from hybrid.tool.checkpoint import load_verified

    return load_verified("AutoModelForDepthEstimation", location)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.ckpt", "model.pkl", "model.h5"])
def test_other_formats_are_not_even_opened(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / "model.safetensors").unlink()
    os.mkfifo(folder / name)
    with pytest.raises(WeightsError):
        _load_for_a_tool(str(folder))
