#!/usr/bin/env bash
# transformers 5.24.0, PyTorch 2.13.0.
#
# Expected: `post_process_depth_estimation` enlarges a map of metres to the size of the picture; every value lies between
# the smallest and the largest metre that the network gave.
# Happens: it enlarges by bicubic interpolation, which overshoots at edges. Two things at 1 m and 2 m before a wall at
# 30 m leave 2 % of the picture at negative distances (down to -5.8 m), and some of the wall at 33.6 m.
# Matters: in code that converts metres to nearness (1 / depth), clips at a small positive number or normalises by the
# nearest pixel, one such edge pixel decides the scale of the whole map: "which of two marked points is nearer" is then
# a tie. Depth Anything's own repository enlarges bilinearly, which cannot leave the range.
# Seen on 2026-11-28:
#   metres of the network: 1.0 to 30.0
#   after post_process_depth_estimation: -5.8 to 33.6, 2.2 % of the pixels below zero
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" torch==2.13.0 transformers==5.24.0 pillow==12.3.0 numpy==2.4.6
"$dir/env/bin/python" - <<'PY'
import torch
from transformers import DPTImageProcessor
from transformers.modeling_outputs import DepthEstimatorOutput

metres = torch.full((1, 37, 50), 30.0)  # a wall
metres[:, 10:20, 10:20] = 1.0
metres[:, 10:20, 25:35] = 2.0

output = DepthEstimatorOutput(predicted_depth=metres)
resized = DPTImageProcessor().post_process_depth_estimation(output, target_sizes=[(480, 640)])[0]["predicted_depth"]
below_zero = (resized < 0).float().mean().item()

print(f"metres of the network: {metres.min():.1f} to {metres.max():.1f}")
print(
    f"after post_process_depth_estimation: {resized.min():.1f} to {resized.max():.1f}, "
    f"{100 * below_zero:.1f} % of the pixels below zero"
)
assert resized.min() < -5 and resized.max() > 33, "changed: the enlarged map stays within the network's range"
assert below_zero > 0.02
PY
