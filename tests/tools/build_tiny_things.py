"""Tiny checkpoints with random weights, in the real format, of networks that find, cut out, describe and read things.

`BUILDERS["owlv2"](folder)` writes one; `conftest.py` makes each once a session. Tokenizers are made here, too, with one
token a byte or a letter, so that any word can be asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

CHARACTERS = ["blank", *"0123456789abcdefghijklmnopqrstuvwxyz", " "]


def _clip_tokenizer(length: int = 16) -> Any:
    import transformers
    from tokenizers.pre_tokenizers import ByteLevel

    letters = sorted(ByteLevel.alphabet())
    vocabulary = {token: place for place, token in enumerate([*letters, *(letter + "</w>" for letter in letters)])}
    for token in ("<|startoftext|>", "<|endoftext|>"):
        vocabulary[token] = len(vocabulary)
    return transformers.CLIPTokenizer(vocab=vocabulary, merges=[], model_max_length=length)


def _bert_tokenizer() -> Any:
    import transformers

    letters = [chr(97 + place) for place in range(26)]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", *letters, *("##" + letter for letter in letters)]
    return transformers.BertTokenizer(vocab={token: place for place, token in enumerate(tokens)})


def _clip_text(tokenizer: Any) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "max_position_embeddings": 16,
        "pad_token_id": 0,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }


VISION = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}


def owlv2(folder: Path) -> None:
    import transformers

    tokenizer = _clip_tokenizer()
    config = transformers.Owlv2Config(
        text_config=_clip_text(tokenizer),
        vision_config={**VISION, "image_size": 96, "patch_size": 16},
        projection_dim=32,
    )
    model = transformers.Owlv2ForObjectDetection(config)
    # Random heads of this width answer with boxes of no size at the corner and with scores of 0 and 1.
    for parameter in (*model.box_head.parameters(), *model.class_head.parameters()):
        parameter.data.mul_(0.05)
    model.save_pretrained(folder)
    processor = transformers.Owlv2ImageProcessor(size={"height": 96, "width": 96})
    transformers.Owlv2Processor(processor, tokenizer).save_pretrained(folder)


def grounding_dino(folder: Path, family: str = "GroundingDino") -> None:
    import transformers

    tokenizer = _bert_tokenizer()
    config = getattr(transformers, f"{family}Config")(
        backbone_config=transformers.SwinConfig(
            embed_dim=16,
            depths=[1, 1, 1, 1],
            num_heads=[1, 1, 2, 2],
            window_size=4,
            image_size=64,
            out_features=["stage2", "stage3", "stage4"],
        ),
        text_config=transformers.BertConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=64,
            max_position_embeddings=64,
        ),
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_ffn_dim=32,
        decoder_ffn_dim=32,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        num_queries=10,
        max_text_len=32,
    )
    getattr(transformers, f"{family}ForObjectDetection")(config).save_pretrained(folder)
    processor = transformers.GroundingDinoImageProcessor(size={"shortest_edge": 96, "longest_edge": 160})
    transformers.GroundingDinoProcessor(processor, tokenizer).save_pretrained(folder)


def mm_grounding_dino(folder: Path) -> None:
    grounding_dino(folder, "MMGroundingDino")


CLASSES = dict(enumerate(("person", "dog", "bus", "dining table", "cat")))


def _rt_detr_like(folder: Path, family: str, backbone: Any) -> None:
    import transformers

    config = getattr(transformers, f"{family}Config")(
        backbone_config=backbone,
        encoder_hidden_dim=16,
        encoder_in_channels=[16, 16, 16],
        feat_strides=[8, 16, 32],
        encoder_layers=1,
        encoder_ffn_dim=32,
        encoder_attention_heads=2,
        d_model=16,
        num_queries=20,
        decoder_in_channels=[16, 16, 16],
        decoder_ffn_dim=32,
        decoder_layers=2,
        decoder_attention_heads=2,
        decoder_n_points=2,
        num_denoising=0,
        id2label=CLASSES,
        anchor_image_size=None,
    )
    getattr(transformers, f"{family}ForObjectDetection")(config).save_pretrained(folder)
    transformers.RTDetrImageProcessor(size={"height": 96, "width": 96}).save_pretrained(folder)


def rt_detr_v2(folder: Path) -> None:
    import transformers

    backbone = transformers.RTDetrResNetConfig(
        embedding_size=8,
        hidden_sizes=[8, 16, 16, 16],
        depths=[1, 1, 1, 1],
        out_features=["stage2", "stage3", "stage4"],
    )
    _rt_detr_like(folder, "RTDetrV2", backbone)


def d_fine(folder: Path, family: str = "DFine") -> None:
    import transformers

    backbone = transformers.HGNetV2Config(
        embedding_size=8,
        stem_channels=[3, 8, 8],
        stage_in_channels=[8, 16, 16, 16],
        stage_mid_channels=[8, 8, 8, 8],
        stage_out_channels=[16, 16, 16, 16],
        stage_num_blocks=[1, 1, 1, 1],
        stage_numb_of_layers=[1, 1, 1, 1],
        stage_downsample=[False, True, True, True],
        stage_light_block=[False] * 4,
        stage_kernel_size=[3] * 4,
        hidden_sizes=[16, 16, 16, 16],
        depths=[1, 1, 1, 1],
        out_features=["stage2", "stage3", "stage4"],
    )
    _rt_detr_like(folder, family, backbone)


def deimv2(folder: Path) -> None:
    d_fine(folder, "Deimv2")


def rf_detr(folder: Path) -> None:
    import transformers

    config = transformers.RfDetrConfig(
        backbone_config=transformers.RfDetrDinov2Config(
            hidden_size=32,
            num_hidden_layers=4,
            num_attention_heads=2,
            mlp_ratio=2,
            image_size=96,
            patch_size=16,
            num_windows=2,
            out_features=["stage2", "stage4"],
        ),
        d_model=32,
        decoder_ffn_dim=32,
        decoder_layers=2,
        decoder_self_attention_heads=2,
        decoder_cross_attention_heads=2,
        decoder_n_points=2,
        num_queries=20,
        group_detr=2,
        c2f_num_blocks=1,
        id2label=CLASSES,
    )
    model = transformers.RfDetrForObjectDetection(config)
    # Every class begins at a score of 0.01.
    model.class_embed.bias.data.zero_()
    model.save_pretrained(folder)
    transformers.RfDetrImageProcessor(size={"height": 96, "width": 96}).save_pretrained(folder)


def sam2(folder: Path) -> None:
    import transformers

    hiera = transformers.Sam2HieraDetConfig(
        hidden_size=12,
        embed_dim_per_stage=[12, 24, 48, 96],
        num_attention_heads_per_stage=[1, 2, 4, 8],
        blocks_per_stage=[1, 2, 7, 2],
        image_size=[128, 128],
    )
    vision = transformers.Sam2VisionConfig(
        backbone_config=hiera,
        backbone_channel_list=[96, 48, 24, 12],
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
        fpn_hidden_size=32,
    )
    config = transformers.Sam2Config(
        vision_config=vision,
        prompt_encoder_config={"hidden_size": 32, "image_size": 128, "patch_size": 16},
        mask_decoder_config={
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "mlp_dim": 32,
            "iou_head_hidden_dim": 32,
        },
    )
    transformers.Sam2Model(config).save_pretrained(folder)
    processor = transformers.Sam2ImageProcessor(
        size={"height": 128, "width": 128}, mask_size={"height": 32, "width": 32}
    )
    transformers.Sam2Processor(processor, target_size=128).save_pretrained(folder)


def sam3(folder: Path) -> None:
    """As `facebook/sam3`: detector and tracker in one file, which has the names of the video model's own tensors."""
    import transformers
    from safetensors.torch import save_file

    tokenizer = _clip_tokenizer(32)
    encoder = {**VISION, "image_size": 112, "pretrain_image_size": 56, "patch_size": 14, "window_size": 4}
    vision = transformers.Sam3VisionConfig(
        backbone_config={**encoder, "model_type": "sam3_vit_model", "global_attn_indexes": [1]},
        fpn_hidden_size=32,
        backbone_feature_sizes=[[32, 32], [16, 16], [8, 8]],
    )
    part = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 2}
    detector = transformers.Sam3Config(
        vision_config=vision.to_dict(),
        text_config={**_clip_text(tokenizer), "projection_dim": 32, "max_position_embeddings": 32},
        geometry_encoder_config={**part, "num_layers": 1, "roi_size": 3},
        detr_encoder_config={**part, "num_layers": 1},
        detr_decoder_config={**part, "num_layers": 2, "num_queries": 10},
        mask_decoder_config={"hidden_size": 32, "num_attention_heads": 2},
    )
    tracker = {
        "vision_config": vision.to_dict(),
        "image_size": 112,
        "prompt_encoder_config": {"hidden_size": 32, "image_size": 112, "patch_size": 14},
        "mask_decoder_config": {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "mlp_dim": 32,
            "iou_head_hidden_dim": 32,
        },
        "memory_attention_hidden_size": 32,
        "memory_attention_num_layers": 1,
        "memory_attention_feed_forward_hidden_size": 32,
        "memory_attention_rope_feat_sizes": [8, 8],
        "memory_encoder_hidden_size": 32,
        "memory_encoder_output_channels": 16,
        "mask_downsampler_embed_dim": 32,
        "memory_fuser_embed_dim": 32,
        "memory_fuser_num_layers": 1,
        "memory_fuser_intermediate_dim": 32,
    }
    config = transformers.Sam3VideoConfig(detector_config=detector.to_dict(), tracker_config=tracker)
    config.save_pretrained(folder)
    # `save_pretrained` of transformers 5.24 would name the tracker's tensors twice.
    tensors = {name: tensor.contiguous() for name, tensor in transformers.Sam3VideoModel(config).state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    sides = {"height": 112, "width": 112}
    pictures = transformers.Sam3ImageProcessor(size=sides, mask_size={"height": 32, "width": 32})
    videos = transformers.Sam2VideoVideoProcessor(size=sides)
    transformers.Sam3VideoProcessor(pictures, videos, tokenizer).save_pretrained(folder)


def clipseg(folder: Path) -> None:
    import transformers

    tokenizer = _clip_tokenizer()
    config = transformers.CLIPSegConfig(
        text_config=_clip_text(tokenizer),
        vision_config={**VISION, "num_hidden_layers": 4, "image_size": 64, "patch_size": 16},
        projection_dim=32,
        extract_layers=[1, 2, 3],
        reduce_dim=16,
        decoder_num_attention_heads=2,
        decoder_intermediate_size=32,
    )
    transformers.CLIPSegForImageSegmentation(config).save_pretrained(folder)
    processor = transformers.ViTImageProcessor(size={"height": 64, "width": 64})
    transformers.CLIPSegProcessor(processor, tokenizer).save_pretrained(folder)


def clip(folder: Path) -> None:
    import transformers

    tokenizer = _clip_tokenizer()
    config = transformers.CLIPConfig(
        text_config=_clip_text(tokenizer),
        vision_config={**VISION, "image_size": 64, "patch_size": 16},
        projection_dim=32,
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    processor = transformers.CLIPImageProcessor(size={"shortest_edge": 64}, crop_size={"height": 64, "width": 64})
    transformers.CLIPProcessor(processor, tokenizer).save_pretrained(folder)


def siglip(folder: Path) -> None:
    import transformers

    tokenizer = _clip_tokenizer()
    config = transformers.SiglipConfig(
        text_config={**_clip_text(tokenizer), "projection_size": 32},
        vision_config={**VISION, "image_size": 64, "patch_size": 16},
    )
    transformers.SiglipModel(config).save_pretrained(folder)
    processor = transformers.SiglipImageProcessor(size={"height": 64, "width": 64})
    transformers.SiglipProcessor(processor, tokenizer).save_pretrained(folder)


def dinov2(folder: Path) -> None:
    import transformers

    config = transformers.Dinov2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, mlp_ratio=2, image_size=70, patch_size=14
    )
    transformers.Dinov2Model(config).save_pretrained(folder)
    # As published with the real ones; the class's own defaults are those of CLIP.
    transformers.BitImageProcessor(
        size={"shortest_edge": 80},
        crop_size={"height": 70, "width": 70},
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    ).save_pretrained(folder)


def dinov3(folder: Path) -> None:
    import transformers

    config = transformers.DINOv3ViTConfig(
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=64,
        patch_size=16,
        num_register_tokens=4,
    )
    transformers.DINOv3ViTModel(config).save_pretrained(folder)
    transformers.DINOv3ViTImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)


def ocr(folder: Path) -> None:
    import torch
    import transformers

    finding, reading = transformers.PPOCRV5MobileDetConfig(), transformers.PPOCRV6TinyRecConfig()
    finding.backbone_config.conv_symmetric_num = 1
    for backbone in (finding.backbone_config, reading.backbone_config):
        backbone.block_configs = [stage[:1] for stage in backbone.block_configs]
        backbone.depths = [1] * len(backbone.block_configs)
    detector = transformers.PPOCRV5MobileDetForObjectDetection(finding)
    # A random map is 0.5 everywhere, below the score of a line: this one says text everywhere.
    torch.nn.init.constant_(detector.head.conv_final.bias, 3.0)
    detector.save_pretrained(folder / "det")
    transformers.PPOCRV5ServerDetImageProcessor().save_pretrained(folder / "det")
    reading.head_out_channels = len(CHARACTERS)
    recogniser = transformers.PPOCRV6TinyRecForTextRecognition(reading)
    # Likewise: an "a" at every step, where random weights would mostly read nothing.
    torch.nn.init.constant_(recogniser.head.fc2.bias, 0.0)
    recogniser.head.fc2.bias.data[CHARACTERS.index("a")] = 20.0
    recogniser.save_pretrained(folder / "rec")
    transformers.PPOCRV6SmallRecImageProcessor(character_list=CHARACTERS).save_pretrained(folder / "rec")


def timm_detector(folder: Path) -> None:
    import timm
    from safetensors.torch import save_file

    model = timm.create_model("test_convnext", pretrained=False, num_classes=1)
    folder.mkdir(exist_ok=True)
    save_file(model.state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    details = {"input_size": [3, 96, 96], "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "crop_pct": 0.9}
    config = {"architecture": "test_convnext", "num_classes": 1, "pretrained_cfg": details}
    (folder / "config.json").write_text(json.dumps(config))


def community_detector(folder: Path) -> None:
    import timm
    from safetensors.torch import save_file

    model = timm.create_model("vit_tiny_patch16_224", pretrained=False, num_classes=1, img_size=224)
    folder.mkdir(exist_ok=True)
    tensors = {f"vit.{name}": tensor.contiguous() for name, tensor in model.state_dict().items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {"model_size": "tiny", "input_size": 224, "patch_size": 16, "freeze_backbone": False}
    (folder / "config.json").write_text(json.dumps(config))


SUPERPOINT = {
    "encoder_hidden_sizes": [16, 16, 32, 32],
    "decoder_hidden_size": 32,
    "descriptor_decoder_dim": 64,
    "keypoint_decoder_dim": 65,
    "max_keypoints": 96,
    "keypoint_threshold": 0.0,
}


def efficientloftr(folder: Path) -> None:
    import transformers

    config = transformers.EfficientLoFTRConfig(
        stage_num_blocks=[1, 1, 1],
        stage_stride=[2, 1, 2],
        out_features=[32, 32, 128],
        hidden_size=128,
        num_attention_layers=1,
        num_attention_heads=8,
        # The default is so small that a random network sees the same everywhere.
        initializer_range=0.3,
        coarse_matching_threshold=0.0,
        coarse_matching_border_removal=0,
    )
    transformers.EfficientLoFTRForKeypointMatching(config).save_pretrained(folder)
    transformers.EfficientLoFTRImageProcessor(size={"height": 64, "width": 96}).save_pretrained(folder)


def lightglue(folder: Path) -> None:
    import transformers

    config = transformers.LightGlueConfig(
        keypoint_detector_config=transformers.SuperPointConfig(**SUPERPOINT),
        descriptor_dim=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        filter_threshold=0.0,
    )
    transformers.LightGlueForKeypointMatching(config).save_pretrained(folder)
    transformers.LightGlueImageProcessor(size={"height": 96, "width": 128}).save_pretrained(folder)


def superglue(folder: Path) -> None:
    import transformers

    config = transformers.SuperGlueConfig(
        keypoint_detector_config=transformers.SuperPointConfig(**SUPERPOINT),
        hidden_size=64,
        keypoint_encoder_sizes=[16, 32],
        gnn_layers_types=["self", "cross"],
        num_attention_heads=4,
        matching_threshold=0.0,
    )
    transformers.SuperGlueForKeypointMatching(config).save_pretrained(folder)
    transformers.SuperGlueImageProcessor(size={"height": 96, "width": 128}).save_pretrained(folder)


def kornia(folder: Path) -> None:
    from kornia.feature import LoFTR
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    save_file(LoFTR(pretrained=None).state_dict(), folder / "loftr.safetensors")


BUILDERS: Mapping[str, Callable[[Path], None]] = {
    builder.__name__: builder
    for builder in (
        owlv2,
        grounding_dino,
        mm_grounding_dino,
        rt_detr_v2,
        d_fine,
        deimv2,
        rf_detr,
        sam2,
        sam3,
        clipseg,
        clip,
        siglip,
        dinov2,
        dinov3,
        ocr,
        timm_detector,
        community_detector,
        efficientloftr,
        lightglue,
        superglue,
        kornia,
    )
}
