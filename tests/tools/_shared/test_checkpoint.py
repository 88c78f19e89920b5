"""A checkpoint loads only if every tensor came from its file: damaged copies of a good one are refused by name."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hybrid.core.errors import WeightsError
from hybrid.tool.checkpoint import Checkpoint, content_hash, load_module, load_verified
from hybrid.tool.networks import collecting
from tests.tools.tiny_checkpoints import Checkpoints

AUTO = "AutoModelForDepthEstimation"
Damage = Callable[[Path], object]


@pytest.fixture
def damaged(depth_checkpoint: Checkpoints, tmp_path: Path) -> Path:
    """A copy of a good checkpoint that a test may damage."""
    return Path(shutil.copytree(depth_checkpoint("depth_anything"), tmp_path / "copy"))


def rewrite(folder: Path, change: Callable[[dict], None]) -> None:
    """Load, change and save the tensors of a checkpoint."""
    from safetensors.torch import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def load(folder: Path) -> Checkpoint:
    return load_verified(AUTO, str(folder), model_types=("depth_anything",))


def test_a_whole_checkpoint_loads_in_evaluation_mode(damaged: Path):
    loaded = load(damaged)
    assert not loaded.model.training
    assert loaded.version == f"depth_anything@{content_hash(damaged)[:12]}"
    assert {str(parameter.dtype) for parameter in loaded.model.parameters()} == {"torch.float32"}


def cut_off(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


def other_shape(tensors: dict) -> None:
    tensors["head.conv1.bias"] = tensors["head.conv1.bias"][:3].clone()


def configured(text: str) -> Damage:
    return lambda folder: folder.joinpath("config.json").write_text(text)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda at: rewrite(at, lambda tensors: tensors.pop("head.conv1.bias")), r"1 missing \(head\.conv1\.bias\)"),
        (lambda at: rewrite(at, other_shape), r"of another shape \(head\.conv1\.bias\)"),
        (cut_off, "cannot be loaded"),
        (lambda at: (at / "preprocessor_config.json").unlink(), "cannot be loaded"),
        (lambda at: (at / "model.safetensors").rename(at / "pytorch_model.bin"), "no other format is read"),
        (lambda at: (at / "config.json").unlink(), r"weights absent: .* has no config\.json"),
        (lambda at: (at / "model.safetensors").unlink(), r"weights absent: .* has no \.safetensors"),
        *((configured(text), "has no (usable )?model_type") for text in ("{}", "[]", "not json", '{"model_type": 3}')),
    ],
)
def test_damage_is_named(damaged: Path, damage: Damage, message: str):
    damage(damaged)
    with pytest.raises(WeightsError, match=message):
        load(damaged)


def test_another_family_and_another_kind_of_model_are_refused(damaged: Path):
    with pytest.raises(WeightsError, match="'depth_anything' checkpoint; expected one of: zoedepth"):
        load_verified(AUTO, str(damaged), model_types=("zoedepth",))
    with pytest.raises(WeightsError, match="cannot be loaded as AutoModelForKeypointMatching"):
        load_verified("AutoModelForKeypointMatching", str(damaged))


def test_an_unexpected_tensor_is_named_unless_known(damaged: Path):
    rewrite(damaged, lambda tensors: tensors.update(adapter=tensors["head.conv1.bias"].clone()))
    with pytest.raises(WeightsError, match=r"1 unexpected \(adapter\)"):
        load(damaged)
    assert load_verified(AUTO, str(damaged), harmless=("adapter",)).model_type == "depth_anything"


def test_a_processor_with_code_is_not_run_whatever_is_typed(damaged: Path, monkeypatch: pytest.MonkeyPatch):
    """The code of a processor is not run, whatever is typed: transformers asks `run custom code? [y/N]` at the terminal
    unless the code is refused."""
    marker = damaged / "was run"
    (damaged / "evil.py").write_text(f"open({str(marker)!r}, 'w').close()\nclass Evil: pass\n")
    config = json.loads((damaged / "preprocessor_config.json").read_text())
    config |= {"image_processor_type": "Evil", "auto_map": {"AutoImageProcessor": "evil.Evil"}}
    (damaged / "preprocessor_config.json").write_text(json.dumps(config))
    monkeypatch.setattr("builtins.input", lambda *_: "y")
    with pytest.raises(WeightsError, match="cannot be loaded"):
        load(damaged)
    assert not marker.exists()


def test_the_hash_follows_content_not_place(damaged: Path, tmp_path: Path):
    previous = content_hash(damaged)
    assert content_hash(Path(shutil.copytree(damaged, tmp_path / "elsewhere"))) == previous
    rewrite(damaged, lambda tensors: tensors["head.conv1.bias"].add_(1))
    changed = content_hash(damaged)
    assert changed != previous
    settings = json.loads((damaged / "preprocessor_config.json").read_text())
    (damaged / "preprocessor_config.json").write_text(json.dumps(settings | {"size": {"height": 84, "width": 84}}))
    assert content_hash(damaged) not in (previous, changed)


@pytest.mark.system
def test_a_module_of_ones_own_is_verified_like_a_checkpoint(tmp_path: Path) -> None:
    import torch
    import transformers
    from safetensors.torch import save_file

    def module() -> torch.nn.Module:
        return torch.nn.Conv2d(3, 4, 3)

    def refused(message: str) -> None:
        with pytest.raises(WeightsError, match=message):
            load_module(module(), str(tmp_path))

    refused(r"has no \.safetensors file")
    network = module()
    save_file(network.state_dict(), tmp_path / "model.safetensors")
    refused(r"has no preprocessor_config\.json")
    # A page of the documentation once showed only size, mean and standard deviation.
    (tmp_path / "preprocessor_config.json").write_text('{"size": {"height": 8, "width": 8}, "image_mean": [0, 0, 0]}')
    refused('names no image processor: add "image_processor_type"')
    (tmp_path / "preprocessor_config.json").write_text("{")
    refused("preprocessor_config.json is not JSON")
    transformers.BitImageProcessor().save_pretrained(tmp_path)
    with collecting() as networks:
        result = load_module(module(), str(tmp_path))
    assert torch.equal(result.model.weight, network.weight)
    assert (result.version, result.model.training) == (f"conv2d@{result.sha256[:12]}", False)
    assert networks[0].wants is not None
    save_file({"weight": network.weight.detach()}, tmp_path / "model.safetensors")
    with pytest.raises(WeightsError, match=r"1 missing \(bias\)"):
        load_module(module(), str(tmp_path))
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(WeightsError, match="cannot be loaded"):
        load_module(module(), str(tmp_path))


def test_pictures_are_made_on_the_host_wherever_the_network_is(depth_checkpoint: Checkpoints) -> None:
    """Pictures are prepared on the host: resizing on a GPU gives other pixels, and a machine without a GPU would refuse
    it."""
    import torch

    loaded = load(depth_checkpoint("depth_anything"))
    picture = np.arange(90 * 120 * 3, dtype=np.uint8).reshape(90, 120, 3)
    on_host, on_card = (
        item.process(images=[picture])["pixel_values"] for item in (loaded, replace(loaded, device="cuda:0"))
    )
    assert on_card.device.type == "cpu"
    assert torch.equal(on_host, on_card)
