"""The bare loop that the tool service is compared with: a network over batches that are prepared beforehand.

It uses transformers, timm and kornia directly, and none of the tools' code. A prepared batch is in host memory; a pass
copies it to the device, runs the network, and copies the outputs that the tool reads back to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench._networks import NETWORKS
from hybrid.tool import Pixels


@dataclass(frozen=True)
class BareLoop:
    """Prepared batches and a forward pass over one of them; `images` is the number of images in all batches."""

    batches: tuple[Any, ...]
    images: int
    forward: Callable[[Any], None]


def bare_loop(name: str, folder: Path, device: str, pictures: Sequence[Pixels], batch: int) -> BareLoop:
    """Build the loop of one of `_networks.NETWORKS` over images (H, W, 3) of one size, in batches of `batch`."""
    if name == "vit_small_forensics":
        return _forensics(folder, device, pictures, batch)
    if name.startswith("aliked_lightglue"):
        return _local_features(folder, device, pictures)
    import torch
    import transformers

    row = NETWORKS[name].loop
    model = getattr(transformers, row["model"]).from_pretrained(folder, dtype="float32").to(device).eval()
    if name == "dinov2_small_attention":
        model.set_attn_implementation("eager")
    processor = getattr(transformers, row["processor"]).from_pretrained(folder)
    groups = [pictures[start : start + batch] for start in range(0, len(pictures), batch)]
    batches = tuple(prepare_batch(row, processor, group) for group in groups)

    def forward(inputs: Mapping[str, Any]) -> None:
        with torch.inference_mode():
            by_input = {key: value.to(device) for key, value in inputs.items() if key not in ON_HOST}
            outputs = model(**by_input, **row.get("asked", {}))
            for path in row["reads"]:
                _read(path, processor, outputs)

    return BareLoop(batches, len(pictures), forward)


ON_HOST = ("original_sizes", "reshaped_input_sizes")


def prepare_batch(row: Mapping[str, Any], processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    """Return the output of a processor for one batch of images."""
    options = {**row.get("given", {}), **{name: [value] * len(group) for name, value in row.get("each", {}).items()}}
    if "patches" in row:
        # Use full images with this many patches of 14 px along the long side, as the tools do.
        height, width = group[0].shape[:2]
        scale = 14 * row["patches"] / max(height, width)
        options["size"] = {"height": 14 * round(height * scale / 14), "width": 14 * round(width * scale / 14)}
    images: list[Any] = list(group)
    if row.get("pairs"):
        images = [list(pair) for pair in zip(group[::2], group[1::2], strict=True)]
    return dict(processor(images=images, return_tensors="pt", **options))


def _read(path: str, processor: Any, outputs: Any) -> None:
    """Copy the output at `path`, which a tool reads, to the host; the processor first postprocesses depth."""
    if path == "depth":
        sizes = [(480, 640)] * len(outputs.predicted_depth)
        for row in processor.post_process_depth_estimation(outputs, target_sizes=sizes):
            row["predicted_depth"].cpu()
        return
    value = outputs
    for part in path.split("."):
        value = value[int(part)] if part.lstrip("-").isdigit() else getattr(value, part)
    # The tools read only the attention of the first token.
    (value[:, :, 0] if path.startswith("attentions") else value).cpu()


def _forensics(folder: Path, device: str, pictures: Sequence[Pixels], batch: int) -> BareLoop:
    """Build the loop of a detector with timm's transform and model."""
    import json

    import timm
    import torch
    from PIL import Image
    from safetensors.torch import load_file

    config = json.loads((folder / "config.json").read_text())
    side = config["pretrained_cfg"]["input_size"][-1]
    model = timm.create_model(config["architecture"], num_classes=1, img_size=side)
    model.load_state_dict(load_file(folder / "model.safetensors"))
    model.to(device).eval()
    transform = timm.data.create_transform(input_size=side, crop_pct=config["pretrained_cfg"]["crop_pct"])
    groups = [pictures[start : start + batch] for start in range(0, len(pictures), batch)]
    batches = tuple(torch.stack([transform(Image.fromarray(item)) for item in group]) for group in groups)

    def forward(values: Any) -> None:
        with torch.inference_mode():
            model(values.to(device)).cpu()

    return BareLoop(batches, len(pictures), forward)


def _local_features(folder: Path, device: str, pictures: Sequence[Pixels]) -> BareLoop:
    """Build the loop of kornia's extractor and matcher.

    Neighbouring images form the two views of a pair, and a pass processes one pair.
    """
    import json

    import kornia.feature
    import torch
    from safetensors.torch import load_file

    name = json.loads((folder / "config.json").read_text())["extractor"]
    tensors = load_file(folder / "model.safetensors")
    parts = {
        "extractor": kornia.feature.ALIKED(name, 2048),
        "matcher": kornia.feature.LightGlue(features=None, input_dim=64 if name == "aliked-t16" else 128),
    }
    for part, module in parts.items():
        mapping = {key.removeprefix(f"{part}."): value for key, value in tensors.items() if key.startswith(f"{part}.")}
        module.load_state_dict(mapping, strict=False)
        module.to(device).eval()
    views = [torch.from_numpy(picture).permute(2, 0, 1)[None].contiguous() / 255 for picture in pictures]

    def forward(pair: Any) -> None:
        with torch.inference_mode():
            inputs = {}
            for side, view in enumerate(pair):
                (seen,) = parts["extractor"](view.to(device))
                size = torch.tensor([[view.shape[-1], view.shape[-2]]], dtype=torch.float32, device=device)
                options = {"keypoints": seen.keypoints[None], "descriptors": seen.descriptors[None], "image_size": size}
                inputs[f"image{side}"] = options
            result = parts["matcher"](inputs)
            result["matches"][0].cpu()
            result["scores"][0].cpu()

    return BareLoop(tuple(zip(views[::2], views[1::2], strict=True)), len(pictures), forward)
