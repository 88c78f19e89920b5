"""Checkpoints of published architectures with random weights, in their real format: made offline, for speed only.

`NETWORKS["depth_anything_v2_small"].build(folder, real=True)` writes config, weights and
processor as the published files have them (sizes from the papers and the published configurations), `real=False` the
same architecture in a fraction of the size. Tokenizers are made here, one token a letter, because the published ones
cannot be had offline; embedding tables are as large as these tokenizers, which costs no time in a forward pass.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

IMAGENET: dict[str, Any] = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}

LARGE = 1024


@dataclass(frozen=True)
class Network:
    """An architecture: what it is called, the tool that it answers for, and what writes its checkpoint.

    `counted` is the class of the module whose calls are the forward passes; `trained` names a package whose weights the
    checkpoint of real size has where it is installed.
    """

    title: str
    tool: str
    counted: str
    # The function of this module that writes the checkpoint, which takes these options.
    writer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    trained: str = ""
    # How the bare loop runs it (`_bare_loops.py`); networks.toml says what the fields are.
    loop: Mapping[str, Any] = field(default_factory=dict)

    def build(self, folder: Path, real: bool, device: str = "cpu") -> None:
        """Write the checkpoint, in real size or tiny; random weights are drawn on the device."""
        import torch

        with torch.device(device):
            globals()[self.writer](folder, real, **self.options)


def _vit(real: bool, width: int = 768) -> dict[str, int]:
    """A vision transformer (Dosovitskiy et al. 2021, table 1: heads of 64, 24 layers if large), or a tiny one of 4."""
    depth, heads = (24 if width == LARGE else 12, width // 64) if real else (4, 2)
    return {"hidden_size": width if real else 32, "num_hidden_layers": depth, "num_attention_heads": heads}


def _tower(real: bool, width: int = 768) -> dict[str, int]:
    sizes = _vit(real, width)
    return {**sizes, "intermediate_size": 4 * sizes["hidden_size"]}


def _clip_tokenizer(length: int) -> Any:
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    tokens = [*letters, *(letter + "</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=length)


def _text(real: bool, tokenizer: Any, width: int, length: int) -> dict[str, int]:
    ends = {"pad_token_id": 0, "bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    return {**_tower(real, width), **ends, "vocab_size": len(tokenizer), "max_position_embeddings": length}


def depth_anything(folder: Path, real: bool, *, width: int = 384) -> None:
    """Depth Anything V2 (Yang et al. 2024): DINOv2 at 518 px and a DPT head; width 384 is small, 768 base, 1024 large.

    Layers and channels as in the published configurations.
    """
    import torch
    import transformers

    unit, fused, layers = (256, 256, [5, 12, 18, 24]) if width == LARGE else (width // 8, width // 6, [3, 6, 9, 12])
    backbone = transformers.Dinov2Config(
        **_vit(real, width),
        image_size=518 if real else 70,
        patch_size=14,
        out_indices=layers if real else [1, 2, 3, 4],
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        reassemble_hidden_size=backbone.hidden_size,
        patch_size=14,
        neck_hidden_sizes=[unit, 2 * unit, 4 * unit, (4 if width == LARGE else 8) * unit] if real else [8, 16, 16, 16],
        fusion_hidden_size=fused if real else 16,
        head_hidden_size=32 if real else 8,
        max_depth=1,
    )
    model = transformers.DepthAnythingForDepthEstimation(config)
    # The last layer ends in a ReLU: without an offset a random network may answer 0 everywhere.
    torch.nn.init.constant_(model.head.conv3.bias, 1.0)
    model.save_pretrained(folder)
    side = 518 if real else 70
    transformers.DPTImageProcessor(
        size={"height": side, "width": side}, keep_aspect_ratio=True, ensure_multiple_of=14, resample=3, **IMAGENET
    ).save_pretrained(folder)


def dinov2(folder: Path, real: bool, *, width: int = 768) -> None:
    """DINOv2 (Oquab et al. 2024) with the processor of its published files: short side 256, middle 224."""
    import transformers

    config = transformers.Dinov2Config(**_vit(real, width), image_size=518 if real else 70, patch_size=14)
    transformers.Dinov2Model(config).save_pretrained(folder)
    short, side = (256, 224) if real else (80, 70)
    transformers.BitImageProcessor(
        size={"shortest_edge": short}, crop_size={"height": side, "width": side}, resample=3, **IMAGENET
    ).save_pretrained(folder)


def siglip2(folder: Path, real: bool) -> None:
    """SigLIP 2 base, patches of 16 at 224 px (Tschannen et al. 2025), which is of transformers' family `siglip`."""
    import transformers

    length, side = (64, 224) if real else (16, 64)
    tokenizer = _clip_tokenizer(length)
    width = 768 if real else 32
    config = transformers.SiglipConfig(
        text_config={**_text(real, tokenizer, 768, length), "projection_size": width},
        vision_config={**_tower(real), "image_size": side, "patch_size": 16},
    )
    transformers.SiglipModel(config).save_pretrained(folder)
    processor = transformers.SiglipImageProcessor(size={"height": side, "width": side})
    transformers.SiglipProcessor(processor, tokenizer).save_pretrained(folder)


def owlv2(folder: Path, real: bool) -> None:
    """OWLv2 base, patches of 16 at 960 px (Minderer et al. 2023)."""
    import transformers

    tokenizer = _clip_tokenizer(16)
    side = 960 if real else 96
    config = transformers.Owlv2Config(
        text_config=_text(real, tokenizer, 512, 16),
        vision_config={**_tower(real), "image_size": side, "patch_size": 16},
        projection_dim=512 if real else 32,
    )
    model = transformers.Owlv2ForObjectDetection(config)
    # Random heads answer with boxes of no size at the corner and with scores of 0 and 1.
    for parameter in (*model.box_head.parameters(), *model.class_head.parameters()):
        parameter.data.mul_(0.05)
    if real:
        # As many boxes as a trained detector finds: about ten of 3,600 reach the score from which one counts.
        model.class_head.logit_shift.bias.data.fill_(-4.5)
    model.save_pretrained(folder)
    processor = transformers.Owlv2ImageProcessor(size={"height": side, "width": side})
    transformers.Owlv2Processor(processor, tokenizer).save_pretrained(folder)


def sam2(folder: Path, real: bool, **hiera_plus: Any) -> None:
    """SAM 2 with the tiny Hiera (Ravi et al. 2024), 1024 px, which are transformers' own defaults."""
    import transformers

    side, widths = (1024, [96, 192, 384, 768]) if real else (128, [12, 24, 48, 96])
    shape = {"embed_dim_per_stage": widths, "blocks_per_stage": [1, 2, 7, 2], **(hiera_plus if real else {})}
    widths = shape["embed_dim_per_stage"]
    hiera = transformers.Sam2HieraDetConfig(hidden_size=widths[0], image_size=[side, side], **shape)
    inner = 256 if real else 32
    vision = transformers.Sam2VisionConfig(
        backbone_config=hiera,
        backbone_channel_list=widths[::-1],
        backbone_feature_sizes=[[side // step] * 2 for step in (4, 8, 16)],
        fpn_hidden_size=inner,
    )
    decoder = {"hidden_size": inner, "mlp_dim": 2048 if real else 32, "iou_head_hidden_dim": inner}
    config = transformers.Sam2Config(
        vision_config=vision,
        prompt_encoder_config={"hidden_size": inner, "image_size": side, "patch_size": 16},
        mask_decoder_config={**decoder, "num_attention_heads": 8 if real else 4},
    )
    transformers.Sam2Model(config).save_pretrained(folder)
    processor = transformers.Sam2ImageProcessor(
        size={"height": side, "width": side}, mask_size={"height": side // 4, "width": side // 4}
    )
    transformers.Sam2Processor(processor, target_size=side).save_pretrained(folder)


def sam2_base_plus(folder: Path, real: bool) -> None:
    """SAM 2.1 with Hiera B+: `sam2.1_hiera_b+.yaml` of facebookresearch/sam2, and the defaults of its `hieradet.py`."""
    sam2(
        folder,
        real,
        embed_dim_per_stage=[112, 224, 448, 896],
        blocks_per_stage=[2, 3, 16, 3],
        num_attention_heads_per_stage=[2, 4, 8, 16],
        num_attention_heads=2,
        global_attention_blocks=[12, 16, 20],
        window_positional_embedding_background_size=[14, 14],
    )


def clipseg(folder: Path, real: bool) -> None:
    """CLIPSeg rd64 (Lüddecke and Ecker 2022): CLIP ViT-B/16 at 352 px and a small decoder."""
    import transformers

    tokenizer = _clip_tokenizer(77 if real else 16)
    side = 352 if real else 64
    config = transformers.CLIPSegConfig(
        text_config=_text(real, tokenizer, 512, 77 if real else 16),
        vision_config={**_tower(real), "image_size": side, "patch_size": 16},
        projection_dim=512 if real else 32,
        extract_layers=[3, 6, 9] if real else [1, 2, 3],
        reduce_dim=64 if real else 16,
        decoder_intermediate_size=2048 if real else 32,
        decoder_num_attention_heads=4 if real else 2,
    )
    transformers.CLIPSegForImageSegmentation(config).save_pretrained(folder)
    processor = transformers.ViTImageProcessor(size={"height": side, "width": side}, **IMAGENET)
    transformers.CLIPSegProcessor(processor, tokenizer).save_pretrained(folder)


def efficientloftr(folder: Path, real: bool) -> None:
    """EfficientLoFTR (Wang et al. 2024) at 640 x 480 px, which are transformers' own defaults."""
    import transformers

    small: dict[str, Any] = {
        "stage_num_blocks": [1, 1, 1],
        "stage_stride": [2, 1, 2],
        "out_features": [32, 32, 128],
        "hidden_size": 128,
        "num_attention_layers": 1,
    }
    config = transformers.EfficientLoFTRConfig(**({} if real else small))
    transformers.EfficientLoFTRForKeypointMatching(config).save_pretrained(folder)
    height, width = (480, 640) if real else (64, 96)
    transformers.EfficientLoFTRImageProcessor(size={"height": height, "width": width}).save_pretrained(folder)


def aliked_lightglue(folder: Path, real: bool) -> None:
    """ALIKED-n16 (Zhao et al. 2023) with LightGlue (Lindenberger et al. 2023): the package's weights, else random."""
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
    """A detector of synthetic images as Community Forensics' (Park and Owens 2025): ViT-S/16 at 384 px, or ViT-Ti."""
    import json

    import timm
    from safetensors.torch import save_file

    size, side = ("small", 384) if real else ("tiny", 64)
    model = timm.create_model(f"vit_{size}_patch16_{side if real else 224}", num_classes=1, img_size=side)
    details = {"input_size": [3, side, side], "mean": IMAGENET["image_mean"], "std": IMAGENET["image_std"]}
    name = f"vit_{size}_patch16_{side if real else 224}"
    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    config = {"architecture": name, "num_classes": 1, "pretrained_cfg": {**details, "crop_pct": 0.9}}
    (folder / "config.json").write_text(json.dumps(config))


# By the word of `--network`.
NETWORKS: Mapping[str, Network] = {
    name: Network(**row) for name, row in tomllib.loads(Path(__file__).with_name("networks.toml").read_text()).items()
}
