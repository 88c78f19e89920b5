#!/usr/bin/env bash
# transformers 5.24.0, PyTorch 2.15.0.
#
# Expected: `pipeline("keypoint-matching")` accepts `batch_size`, as every pipeline of transformers does, and gives the
# same matches for pairs in batches as for single pairs.
# Happens: every batch size above 1 ends in a TypeError ("argument after ** must be a mapping, not list"), even for a
# single pair. The pipeline's own preprocessing returns a dictionary, which the collation of batches turns into a list.
# Matters: the other pipelines for specialists (depth, detection, segmentation) are batched by this argument. Code that
# treats all pipelines alike fails only for correspondence, where pairs are matched one by one on a device that is
# mostly idle.
# Seen on 2026-11-30:
#   batch_size=1: 2 pairs answered
#   batch_size=2: TypeError
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" transformers==5.24.0 torch==2.15.0 torchvision==0.29.2 pillow==13.0.0 numpy==2.4.6
"$dir/env/bin/python" -W ignore - <<'PY'
import numpy as np
import transformers
from PIL import Image
from transformers import EfficientLoFTRConfig, EfficientLoFTRForKeypointMatching, EfficientLoFTRImageProcessor

transformers.utils.logging.set_verbosity_error()
model = EfficientLoFTRForKeypointMatching(EfficientLoFTRConfig())
match = transformers.pipeline("keypoint-matching", model=model, image_processor=EfficientLoFTRImageProcessor())
random = np.random.default_rng(0)


def image():
    return Image.fromarray(random.integers(0, 256, (120, 160, 3), dtype=np.uint8))


pairs = [[image(), image()] for _ in range(2)]
answers = match(pairs, batch_size=1)
print(f"batch_size=1: {len(answers)} pairs answered")
assert len(answers) == 2, "changed: pairs one by one"
try:
    match(pairs, batch_size=2)
except TypeError as error:
    print(f"batch_size=2: {type(error).__name__}")
    assert "must be a mapping, not list" in str(error), "changed: another error"
else:
    raise SystemExit("changed: pairs are matched in batches")
PY
