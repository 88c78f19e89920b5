"""Tiny checkpoints with random weights in the real format, so that learned backends run their true path offline."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import pytest

NETWORKS = frozenset({"depth_checkpoint", "things_checkpoint"})
"""Fixtures of weights: torch and transformers take seconds to load in each process that tests one of them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for one of them `system`, but for the contract, which asks for it by backend."""
    for item in items:
        if item.path.name != "test_contract.py" and not NETWORKS.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker("system")


DepthFamily = Literal["depth_anything", "depth_anything_metric", "depth_pro", "dpt", "dpt_dinov2", "zoedepth"]


def _depth_anything(folder: Path, estimation: str) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    stages = ["stage1", "stage2", "stage3", "stage4"]
    backbone = transformers.Dinov2Config(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=70,
        patch_size=14,
        out_features=stages,
        reshape_hidden_states=False,
        apply_layernorm=True,
    )
    config = transformers.DepthAnythingConfig(
        backbone_config=backbone,
        reassemble_hidden_size=32,
        patch_size=14,
        neck_hidden_sizes=[8, 16, 16, 16],
        fusion_hidden_size=16,
        head_hidden_size=8,
        depth_estimation_type=estimation,
        max_depth=20 if estimation == "metric" else 1,
    )
    model = transformers.DepthAnythingForDepthEstimation(config)
    # The last layer ends in a ReLU: without an offset a random network may answer 0 everywhere.
    torch.nn.init.constant_(model.head.conv3.bias, 1.0)
    model.save_pretrained(folder)
    transformers.DPTImageProcessor(
        size={"height": 70, "width": 70},
        keep_aspect_ratio=True,
        ensure_multiple_of=14,
        image_mean=[0.485, 0.456, 0.406],
        image_std=[0.229, 0.224, 0.225],
    ).save_pretrained(folder)


def _zoedepth(folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    backbone = transformers.BeitConfig(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=64,
        patch_size=16,
        out_features=["stage1", "stage2", "stage3", "stage4"],
        reshape_hidden_states=False,
    )
    config = transformers.ZoeDepthConfig(
        backbone_config=backbone,
        reassemble_factors=[4, 2, 1, 0.5],
        neck_hidden_sizes=[16, 16, 16, 16],
        fusion_hidden_size=16,
        bottleneck_features=16,
        num_relative_features=8,
        bin_embedding_dim=8,
        num_attractors=[4, 2, 2, 1],
        bin_configurations=[{"n_bins": 8, "min_depth": 0.001, "max_depth": 10.0, "name": "nyu"}],
        patch_transformer_hidden_size=16,
        patch_transformer_intermediate_size=32,
        patch_transformer_num_attention_heads=2,
        num_patch_transformer_layers=1,
    )
    transformers.ZoeDepthForDepthEstimation(config).save_pretrained(folder)
    transformers.ZoeDepthImageProcessor(size={"height": 64, "width": 64}, ensure_multiple_of=16).save_pretrained(folder)


def _depth_pro(folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    vit = {
        "model_type": "dinov2",
        "hidden_size": 16,
        "num_hidden_layers": 4,
        "num_attention_heads": 2,
        "mlp_ratio": 2,
        "image_size": 32,
        "patch_size": 8,
        "use_mask_token": False,
    }
    config = transformers.DepthProConfig(
        patch_size=32,
        fusion_hidden_size=16,
        intermediate_hook_ids=[3, 1],
        intermediate_feature_dims=[8, 8],
        scaled_images_ratios=[0.25, 0.5, 1],
        scaled_images_overlap_ratios=[0.0, 0.5, 0.25],
        scaled_images_feature_dims=[8, 8, 8],
        merge_padding_value=1,
        use_batch_norm_in_fusion_residual=False,
        use_fov_model=True,
        num_fov_head_layers=2,
        image_model_config=vit,
        patch_model_config=vit,
        fov_model_config=vit,
    )
    transformers.DepthProForDepthEstimation(config).save_pretrained(folder)
    transformers.DepthProImageProcessor(size={"height": 128, "width": 128}).save_pretrained(folder)


def _dpt(folder: Path) -> None:
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.DPTConfig(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        intermediate_size=64,
        image_size=64,
        patch_size=16,
        backbone_out_indices=[0, 1, 2, 3],
        neck_hidden_sizes=[16] * 4,
        fusion_hidden_size=16,
    )
    transformers.DPTForDepthEstimation(config).save_pretrained(folder)
    transformers.DPTImageProcessor(size={"height": 64, "width": 64}).save_pretrained(folder)


def _dpt_dinov2(folder: Path) -> None:
    """As transformers' convert_dinov2_depth_to_hf.py writes those of DINOv2's authors: a projection, a border of 14."""
    import torch
    import transformers

    torch.manual_seed(0)
    backbone = transformers.Dinov2Config(
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=2,
        mlp_ratio=2,
        image_size=70,
        patch_size=14,
        out_indices=[1, 2, 3, 4],
        reshape_hidden_states=False,
        apply_layernorm=False,
    )
    config = transformers.DPTConfig(
        backbone_config=backbone,
        neck_hidden_sizes=[8, 16, 16, 16],
        # The projection before the head has this width, whatever the configuration says.
        fusion_hidden_size=256,
        use_bias_in_fusion_residual=False,
        add_projection=True,
    )
    transformers.DPTForDepthEstimation(config).save_pretrained(folder)
    transformers.DPTImageProcessor(
        do_resize=False,
        do_rescale=False,
        do_pad=True,
        size_divisor=14,
        image_mean=[123.675, 116.28, 103.53],
        image_std=[58.395, 57.12, 57.375],
    ).save_pretrained(folder)


@pytest.fixture(scope="session")
def depth_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[DepthFamily], Path]:
    """`depth_checkpoint("depth_anything")` is the folder of a checkpoint of about 0.5 MB, made once."""
    made: dict[str, Path] = {}
    builders: dict[str, Callable[[Path], None]] = {
        "depth_anything": partial(_depth_anything, estimation="relative"),
        "depth_anything_metric": partial(_depth_anything, estimation="metric"),
        "depth_pro": _depth_pro,
        "dpt": _dpt,
        "dpt_dinov2": _dpt_dinov2,
        "zoedepth": _zoedepth,
    }

    def get(family: DepthFamily) -> Path:
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            builders[family](folder)
            made[family] = folder
        return made[family]

    return get


BUILDER_FILES = ("build_tiny_things.py", "build_tiny_diffusion.py")


@pytest.fixture(scope="session")
def things_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """`things_checkpoint("owlv2")` is the folder of a checkpoint of the builder files, made once."""
    import importlib.util

    builders: dict[str, Callable[[Path], None]] = {}
    for file in BUILDER_FILES:
        found = importlib.util.spec_from_file_location(file.removesuffix(".py"), Path(__file__).with_name(file))
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        builders.update(module.BUILDERS)
    made: dict[str, Path] = {}

    def get(name: str) -> Path:
        if name not in made:
            import torch

            torch.manual_seed(0)
            folder = tmp_path_factory.mktemp(name)
            builders[name](folder)
            made[name] = folder
        return made[name]

    return get
