"""Tiny checkpoints with random weights in the real format, as tiny_checkpoints.toml describes them.

`write("owlv2", folder)` writes one; `conftest.py` makes each once per session. Tokenizers have one token per byte or
letter, so that any word can be used.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hybrid.plugins.registry import load

# The folder of a checkpoint by its name, written once per session.
Checkpoints = Callable[[str], Path]
CHARACTERS = ["blank", *"0123456789abcdefghijklmnopqrstuvwxyz", " "]


@cache
def _described() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def _merged(mapping: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    by_key = {
        key: _merged(mapping[key], other[key]) for key in mapping if isinstance(mapping[key], dict) and key in other
    }
    return {**mapping, **other, **by_key}


def _resolve_like(table: dict[str, Any]) -> dict[str, Any]:
    """Return a table merged with the one it is based on."""
    if "like" not in table:
        return table
    base: dict[str, Any] = _described()
    for step in table["like"].split("."):
        base = base[step]
    return _merged(_resolve_like(base), {key: value for key, value in table.items() if key != "like"})


def _built(value: Any) -> Any:
    if isinstance(value, list):
        return [_built(item) for item in value]
    if not isinstance(value, dict):
        return None if value == "$none" else value
    by_value = {key: _built(item) for key, item in _resolve_like(value).items()}
    if "tokenizer" in value and "class" not in by_value:
        return TOKENIZERS[by_value.pop("tokenizer")](**by_value)
    if "class" not in by_value:
        return by_value
    import transformers

    name, method = by_value.pop("class"), by_value.pop("method", "")
    kind = getattr(transformers, name, None)
    if kind is None:
        kind = getattr(pytest.importorskip("diffusers", reason="the extra `diffusers` is not installed"), name)
    result = kind(*by_value.pop("of", ()), **by_value)
    return getattr(result, method)() if method else result


def _clip_tokenizer(length: int = 16) -> Any:
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=length)


def _bert_tokenizer() -> Any:
    import transformers

    letters = [chr(97 + place) for place in range(26)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters, *("##" + letter for letter in letters)]
    return transformers.BertTokenizer(vocab={token: place for place, token in enumerate(tokens)})


TOKENIZERS: Mapping[str, Callable[..., Any]] = {"clip": _clip_tokenizer, "bert": _bert_tokenizer}


def write(name: str, folder: Path) -> None:
    """Write a checkpoint of the tables, or of `CODED`, with seeded weights."""
    import torch

    torch.manual_seed(0)
    folder.mkdir(exist_ok=True)
    if name in CODED:
        CODED[name](folder)
        return
    parts = {part: _built(value) for part, value in _resolve_like(_described()[name]).items()}
    if "pipeline" in parts:
        parts["pipeline"].save_pretrained(folder)
        return
    import transformers
    from safetensors.torch import save_file

    model = getattr(transformers, parts["model"])(parts["config"])
    for parameter_name, parameter in model.named_parameters():
        for start, value in parts.get("set", {}).items():
            if parameter_name.startswith(start):
                parameter.data.fill_(value)
        for start, factor in parts.get("times", {}).items():
            if parameter_name.startswith(start):
                parameter.data.mul_(factor)
    if name == "sam3":
        # `save_pretrained` of transformers 5.24 would name the tracker's tensors twice.
        parts["config"].save_pretrained(folder)
        tensors = {place: tensor.contiguous() for place, tensor in model.state_dict().items()}
        save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    else:
        model.save_pretrained(folder)
    parts["processor"].save_pretrained(folder)


def started(tool: str, folder: Path) -> Any:
    """Return the learned backend of a tool with the weights in a folder."""
    backend = load("tools", tool).backend("learned").make()
    backend.setup("cpu", str(folder))
    return backend


def _ocr(folder: Path) -> None:
    import torch
    import transformers

    finding, reading = transformers.PPOCRV5MobileDetConfig(), transformers.PPOCRV6TinyRecConfig()
    finding.backbone_config.conv_symmetric_num = 1
    for backbone in (finding.backbone_config, reading.backbone_config):
        backbone.block_configs = [stage[:1] for stage in backbone.block_configs]
        backbone.depths = [1] * len(backbone.block_configs)
    detector = transformers.PPOCRV5MobileDetForObjectDetection(finding)
    # A random map is 0.5 everywhere, below the score of a line: this one reports text everywhere.
    torch.nn.init.constant_(detector.head.conv_final.bias, 3.0)
    detector.save_pretrained(folder / "det")
    transformers.PPOCRV5ServerDetImageProcessor().save_pretrained(folder / "det")
    reading.head_out_channels = len(CHARACTERS)
    recogniser = transformers.PPOCRV6TinyRecForTextRecognition(reading)
    # Likewise, this recogniser reads an "a" at every step, because random weights would mostly read nothing.
    torch.nn.init.constant_(recogniser.head.fc2.bias, 0.0)
    recogniser.head.fc2.bias.data[CHARACTERS.index("a")] = 20.0
    recogniser.save_pretrained(folder / "rec")
    transformers.PPOCRV6SmallRecImageProcessor(character_list=CHARACTERS).save_pretrained(folder / "rec")


def _timm_detector(folder: Path) -> None:
    details = {"input_size": [3, 96, 96], "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "crop_pct": 0.9}
    _timm(folder, "test_convnext", {"architecture": "test_convnext", "num_classes": 1, "pretrained_cfg": details})


def _community_detector(folder: Path) -> None:
    config = {"model_size": "tiny", "input_size": 224, "patch_size": 16, "freeze_backbone": False}
    _timm(folder, "vit_tiny_patch16_224", config, "vit.", img_size=224)


def _timm(folder: Path, architecture: str, config: Mapping[str, Any], prefix: str = "", **more: Any) -> None:
    import timm
    from safetensors.torch import save_file

    model = timm.create_model(architecture, pretrained=False, num_classes=1, **more)
    tensors = {f"{prefix}{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config))


def _kornia(folder: Path) -> None:
    from kornia.feature import LoFTR
    from safetensors.torch import save_file

    save_file(LoFTR(pretrained=None).state_dict(), folder / "loftr.safetensors")


# Checkpoints that consist of several models or configurations.
CODED: Mapping[str, Callable[[Path], None]] = {
    "ocr": _ocr,
    "timm_detector": _timm_detector,
    "community_detector": _community_detector,
    "kornia": _kornia,
}
