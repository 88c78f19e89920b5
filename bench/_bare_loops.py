"""The bare loop that the tool service is compared with: a network over batches that its processor has made before.

It uses transformers, timm and kornia directly and none of the tools' code. A batch lies ready in
host memory; a pass copies it to the device, runs the network and copies to the host what the tool reads of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hybrid.tool import Pixels

TEXTS = ("a photo of a red ball", "a photo of a blue cube", "an empty street", "a busy street")
NAMES = ("ball", "cube")
BOX_PX = (100, 90, 420, 360)
"""Inside of every picture of `bench/_throughput.py`."""


@dataclass(frozen=True)
class BareLoop:
    """Ready batches and one pass over one of them; `images` is how many a pass over all of them sees."""

    batches: tuple[Any, ...]
    images: int
    forward: Callable[[Any], None]


Ready = Callable[[Any, Sequence[Pixels]], Mapping[str, Any]]
"""The output of a processor for one batch of images."""
Read = Callable[[Any, Any], None]
"""Copies what a tool reads of a processor's post-processing, or of the outputs, to the host."""


def bare_loop(name: str, folder: Path, device: str, pictures: Sequence[Pixels], batch: int) -> BareLoop:
    """The loop of one of `_networks.NETWORKS` over pictures (H, W, 3) of one size, `batch` of them a pass."""
    if name == "vit_small_forensics":
        return _forensics(folder, device, pictures, batch)
    if name.startswith("aliked_lightglue"):
        return _local_features(folder, device, pictures)
    auto, processor_class, ready, read = LOOPS[name]
    import torch
    import transformers

    model = getattr(transformers, auto).from_pretrained(folder, dtype="float32").to(device).eval()
    if name == "dinov2_small_attention":
        model.set_attn_implementation("eager")
    processor = getattr(transformers, processor_class).from_pretrained(folder)
    groups = [pictures[start : start + batch] for start in range(0, len(pictures), batch)]
    batches = tuple(dict(ready(processor, group)) for group in groups)
    asked = OPTIONS.get(name, {})

    def forward(inputs: Mapping[str, Any]) -> None:
        with torch.inference_mode():
            there = {key: value.to(device) for key, value in inputs.items() if key not in ON_HOST}
            read(processor, model(**there, **asked))

    return BareLoop(batches, len(pictures), forward)


ON_HOST = ("original_sizes", "reshaped_input_sizes")
OPTIONS: Mapping[str, dict[str, bool]] = {
    "dinov2_base": {"output_hidden_states": True},
    "dinov2_small_attention": {"output_attentions": True},
    "sam2_tiny": {"multimask_output": False},
    "sam2_base_plus": {"multimask_output": False},
}


def _images(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    inputs: Mapping[str, Any] = processor(images=list(group), return_tensors="pt", input_data_format="channels_last")
    return inputs


def _dense(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    """Whole pictures with 40 patches along the long side, as semantic_correspondence and jigsaw ask for them."""
    return _patches(processor, group, 40)


def _attended(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    """Whole pictures with 32 patches along the long side, as saliency asks for them."""
    return _patches(processor, group, 32)


def _patches(processor: Any, group: Sequence[Pixels], along: int) -> Mapping[str, Any]:
    height, width = group[0].shape[:2]
    scale = 14 * along / max(height, width)
    size = {"height": 14 * round(height * scale / 14), "width": 14 * round(width * scale / 14)}
    inputs: Mapping[str, Any] = processor(images=list(group), return_tensors="pt", size=size, do_center_crop=False)
    return inputs


def _with_texts(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    inputs: Mapping[str, Any] = processor(
        images=list(group), text=list(TEXTS), padding="max_length", truncation=True, return_tensors="pt"
    )
    return inputs


def _with_queries(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    queries = [[f"a photo of a {name}" for name in NAMES] for _ in group]
    inputs: Mapping[str, Any] = processor(
        images=list(group), text=queries, padding="max_length", truncation=True, return_tensors="pt"
    )
    return inputs


def _with_words(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    inputs: Mapping[str, Any] = processor(
        images=list(group), text=[NAMES[0]] * len(group), padding=True, return_tensors="pt"
    )
    return inputs


def _with_boxes(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    boxes = [[[float(edge) for edge in BOX_PX]] for _ in group]
    inputs: Mapping[str, Any] = processor(images=list(group), input_boxes=boxes, return_tensors="pt")
    return inputs


def _pairs(processor: Any, group: Sequence[Pixels]) -> Mapping[str, Any]:
    """Neighbours as the two views of a pair."""
    pairs = [list(pair) for pair in zip(group[::2], group[1::2], strict=True)]
    inputs: Mapping[str, Any] = processor(images=pairs, return_tensors="pt", input_data_format="channels_last")
    return inputs


def _read_depth(processor: Any, outputs: Any) -> None:
    sizes = [(480, 640)] * len(outputs.predicted_depth)
    for row in processor.post_process_depth_estimation(outputs, target_sizes=sizes):
        row["predicted_depth"].cpu()


def _read_features(_: Any, outputs: Any) -> None:
    for layer in (outputs.last_hidden_state, outputs.hidden_states[3], outputs.hidden_states[-1]):
        layer.cpu()


def _read_attention(_: Any, outputs: Any) -> None:
    outputs.attentions[-1][:, :, 0].cpu()


def _read_tokens(_: Any, outputs: Any) -> None:
    outputs.last_hidden_state.cpu()


def _read_texts(_: Any, outputs: Any) -> None:
    for values in (outputs.logits_per_image, outputs.text_embeds, outputs.image_embeds):
        values.cpu()


def _read_boxes(_: Any, outputs: Any) -> None:
    outputs.logits.cpu()
    outputs.pred_boxes.cpu()


def _read_masks(_: Any, outputs: Any) -> None:
    outputs.pred_masks.cpu()
    outputs.iou_scores.cpu()


def _read_logits(_: Any, outputs: Any) -> None:
    outputs.logits.cpu()


def _read_matches(_: Any, outputs: Any) -> None:
    for values in (outputs.keypoints, outputs.matches, outputs.matching_scores):
        values.cpu()


LOOPS: Mapping[str, tuple[str, str, Ready, Read]] = {
    "depth_anything_v2_small": ("AutoModelForDepthEstimation", "AutoImageProcessor", _images, _read_depth),
    "depth_anything_v2_base": ("AutoModelForDepthEstimation", "AutoImageProcessor", _images, _read_depth),
    "depth_anything_v2_large": ("AutoModelForDepthEstimation", "AutoImageProcessor", _images, _read_depth),
    "dinov2_base": ("AutoModel", "AutoImageProcessor", _images, _read_features),
    "dinov2_small_attention": ("AutoModel", "AutoImageProcessor", _attended, _read_attention),
    "dinov2_base_dense": ("AutoModel", "AutoImageProcessor", _dense, _read_tokens),
    "dinov2_base_jigsaw": ("AutoModel", "AutoImageProcessor", _dense, _read_tokens),
    "siglip2_base": ("AutoModel", "AutoProcessor", _with_texts, _read_texts),
    "owlv2_base": ("AutoModelForZeroShotObjectDetection", "AutoProcessor", _with_queries, _read_boxes),
    "sam2_tiny": ("Sam2Model", "Sam2Processor", _with_boxes, _read_masks),
    "sam2_base_plus": ("Sam2Model", "Sam2Processor", _with_boxes, _read_masks),
    "clipseg": ("CLIPSegForImageSegmentation", "CLIPSegProcessor", _with_words, _read_logits),
    "clipseg_search": ("CLIPSegForImageSegmentation", "CLIPSegProcessor", _with_words, _read_logits),
    "efficientloftr": ("AutoModelForKeypointMatching", "AutoImageProcessor", _pairs, _read_matches),
}
"""Model class, processor class, maker of batches, and reader of outputs, by the word of `--network`."""


def _forensics(folder: Path, device: str, pictures: Sequence[Pixels], batch: int) -> BareLoop:
    """The transform and the model of timm."""
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
    batches = tuple(torch.stack([transform(Image.fromarray(one)) for one in group]) for group in groups)

    def forward(values: Any) -> None:
        with torch.inference_mode():
            model(values.to(device)).cpu()

    return BareLoop(batches, len(pictures), forward)


def _local_features(folder: Path, device: str, pictures: Sequence[Pixels]) -> BareLoop:
    """The extractor and the matcher of kornia, neighbours as the two views of a pair, one pair a pass."""
    import json

    import kornia.feature
    import torch
    from safetensors.torch import load_file

    name, tensors = (
        json.loads((folder / "config.json").read_text())["extractor"],
        load_file(folder / "model.safetensors"),
    )
    parts = {
        "extractor": kornia.feature.ALIKED(name, 2048),
        "matcher": kornia.feature.LightGlue(features=None, input_dim=64 if name == "aliked-t16" else 128),
    }
    for part, module in parts.items():
        own = {key.removeprefix(f"{part}."): value for key, value in tensors.items() if key.startswith(f"{part}.")}
        module.load_state_dict(own, strict=False)
        module.to(device).eval()
    views = [torch.from_numpy(one).permute(2, 0, 1)[None].contiguous() / 255 for one in pictures]

    def forward(pair: Any) -> None:
        with torch.inference_mode():
            inputs = {}
            for side, view in enumerate(pair):
                (seen,) = parts["extractor"](view.to(device))
                size = torch.tensor([[view.shape[-1], view.shape[-2]]], dtype=torch.float32, device=device)
                given = {"keypoints": seen.keypoints[None], "descriptors": seen.descriptors[None], "image_size": size}
                inputs[f"image{side}"] = given
            found = parts["matcher"](inputs)
            found["matches"][0].cpu()
            found["scores"][0].cpu()

    return BareLoop(tuple(zip(views[::2], views[1::2], strict=True)), len(pictures), forward)
