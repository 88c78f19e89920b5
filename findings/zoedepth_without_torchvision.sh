#!/usr/bin/env bash
# transformers 5.24.0, PyTorch 2.13.0, torchvision not installed.
#
# Expected: without torchvision, transformers falls back to the Pillow version of an image processor ("for backward
# compatibility", it says), and that version does all that the other one does.
# Happens: `ZoeDepthImageProcessorPil.post_process_depth_estimation` uses torchvision's functions without importing them
# and ends with a NameError. This happens only if it resizes to a target size; without a target size the call returns.
# Matters: depth models are loaded by an `Auto` class. On a machine without torchvision everything works, the network
# runs, and only the last step fails. A harness that treats a failed tool as "no answer" lowers the specialist's score.
# Seen on 2026-11-28:
#   ZoeDepthImageProcessorPil NameError: name 'tvF' is not defined
#   DPTImageProcessorPil torch.Size([480, 640])
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" torch==2.13.0 transformers==5.24.0 pillow==12.3.0 numpy==2.4.6
"$dir/env/bin/python" - <<'PY'
import importlib.util

import torch
from transformers import DPTImageProcessor, ZoeDepthImageProcessor
from transformers.modeling_outputs import DepthEstimatorOutput

assert importlib.util.find_spec("torchvision") is None
depth = DepthEstimatorOutput(predicted_depth=torch.rand(1, 37, 50) + 1)

zoe = ZoeDepthImageProcessor()
try:
    zoe.post_process_depth_estimation(depth, source_sizes=[(480, 640)], target_sizes=[(480, 640)])
except NameError as error:
    print(type(zoe).__name__, f"NameError: {error}")
else:
    raise SystemExit("changed: ZoeDepth's processor resizes without torchvision")

dpt = DPTImageProcessor()
resized = dpt.post_process_depth_estimation(depth, target_sizes=[(480, 640)])[0]["predicted_depth"]
print(type(dpt).__name__, resized.shape)
PY
