"""Checkpoints of published architectures with random weights, in their real format: made offline, for speed only.

`NETWORKS["depth_anything_v2_small"].build(folder, real=True)` writes config, weights and processor like the published
files (sizes from the papers and the published configurations); `real=False` writes the same architecture in a fraction
of the size. Tokenizers are made here, with one token per letter, because the published ones are not available offline.
Embedding tables are as large as these tokenizers, which does not affect the time of a forward pass.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# For each architecture: its transformers classes and, by size, the arguments of these classes.
ARCHITECTURES: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("architectures.toml").read_text())


@dataclass(frozen=True)
class Network:
    """An architecture: its name, the tool that uses it, and how its checkpoint is built.

    `module_class` is the class of the module whose calls are the forward passes; `trained` names a package whose
    weights are used in the checkpoint of real size if the package is installed.
    """

    title: str
    tool: str
    module_class: str
    # One of `ARCHITECTURES`, or a function in this module that writes the checkpoint.
    architecture: str
    size: str = ""
    trained: str = ""
    # How the bare loop runs the network (`_bare_loops.py`); networks.toml explains the fields.
    loop: Mapping[str, Any] = field(default_factory=dict)

    def build(self, folder: Path, real: bool, device: str = "cpu") -> None:
        """Write the checkpoint, real or tiny; random weights are drawn on the device."""
        import torch

        with torch.device(device):
            if self.size:
                _write(ARCHITECTURES[self.architecture], self.size if real else "tiny", folder)
            else:
                globals()[self.architecture](folder, real)


def _write(classes: Mapping[str, Any], size: str, folder: Path) -> None:
    import torch
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel

    def make_network(name: str, *parts: Any, **options: Any) -> Any:
        return getattr(transformers, classes[name])(*parts, **options)

    values, parts = _over(classes.get("given", {}), classes[size]), []
    config = values.get("config", {})
    if length := values.get("letters"):
        letters = sorted(ByteLevel.alphabet())
        tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
        vocabulary = {token: place for place, token in enumerate(tokens)}
        tokenizer: Any = transformers.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=length)
        ends = {"pad_token_id": 0, "bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
        of_text = {**ends, "vocab_size": len(tokenizer), "max_position_embeddings": length}
        config, parts = _over(config, {"text_config": of_text}), [tokenizer]
    model = make_network("model", make_network("config", **config))
    match classes["model"]:
        case "DepthAnythingForDepthEstimation":
            # The last layer ends in a ReLU: without an offset, a random network may return 0 everywhere.
            torch.nn.init.constant_(model.head.conv3.bias, 1.0)
        case "Owlv2ForObjectDetection":
            # Shrink the random heads: otherwise, they return empty boxes at the corner, with scores of 0 and 1.
            for parameter in (*model.box_head.parameters(), *model.class_head.parameters()):
                parameter.data.mul_(0.05)
            if size != "tiny":
                # Shift the scores so that ten of 3,600 boxes reach the threshold, as with a trained detector.
                side, shift = config["vision_config"]["image_size"], model.class_head.logit_shift.bias
                for parameter in model.class_head.logit_scale.parameters():
                    parameter.data.zero_()
                soft = torch.nn.functional.interpolate(torch.randn(1, 3, 12, 16), (side, side), mode="bicubic")
                words = torch.randint(1, len(parts[0]) - 2, (2, length))
                with torch.inference_mode():
                    best = model.eval()(input_ids=words, pixel_values=soft).logits.amax(dim=-1).flatten()
                shift.data += math.log(0.1 / 0.9) - best.topk(10).values[-1]
    model.save_pretrained(folder)
    images = make_network("images", **values["images"])
    processor = (
        make_network("processor", images, *parts, **values.get("more", {})) if "processor" in classes else images
    )
    processor.save_pretrained(folder)


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge both tables, including nested ones; values of `above` take precedence."""
    inside = {name: _over(below.get(name, {}), value) for name, value in above.items() if isinstance(value, Mapping)}
    return {**below, **above, **inside}


def aliked_lightglue(folder: Path, real: bool) -> None:
    """Build ALIKED-n16 (Zhao et al. 2023) with LightGlue (Lindenberger et al. 2023).

    With `real`, the weights are those of the package if it is installed. Otherwise they are random, and without `real`
    the extractor is the smaller ALIKED-t16.
    """
    import json
    import shutil

    from safetensors.torch import save_file

    from tools._shared.local_features import DERIVED, MODEL_TYPE, networks
    from tools._shared.matching_package import converted, package_folder

    if real and package_folder() is not None:
        shutil.copytree(converted(), folder, dirs_exist_ok=True)
        return
    extractor = "aliked-n16" if real else "aliked-t16"
    tensors = {name: value for name, value in networks(extractor).state_dict().items() if name not in DERIVED}
    save_file({name: value.contiguous() for name, value in tensors.items()}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE, "extractor": extractor}))


def forensics(folder: Path, real: bool) -> None:
    """Build a detector like Community Forensics (Park and Owens 2025): ViT-S/16 at 384 px, or ViT-Ti."""
    import json

    import timm
    from safetensors.torch import save_file

    name, side = ("vit_small_patch16_384", 384) if real else ("vit_tiny_patch16_224", 64)
    model = timm.create_model(name, num_classes=1, img_size=side)
    pretrained = {"input_size": [3, side, side], "mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    config = {"architecture": name, "num_classes": 1, "pretrained_cfg": {**pretrained, "crop_pct": 0.9}}
    (folder / "config.json").write_text(json.dumps(config))


# Networks by the value of `--network`.
NETWORKS: Mapping[str, Network] = {
    name: Network(**row) for name, row in tomllib.loads(Path(__file__).with_name("networks.toml").read_text()).items()
}
