#!/usr/bin/env bash
# pysaliency 0.2.22, NumPy 2.3.5.
#
# Expected: a correlation is symmetric, so `CC(flat, map)` and `CC(map, flat)` are equal, and a blank map gets the same
# value whether its pixels are floats or bytes.
# Happens: `CC(flat, map)` is 0 and `CC(map, flat)` is NaN. `SIM` and `MIT_KLDiv` take a blank float map for a uniform
# one, but raise an error for the same map as uint8, which is the type of a saved saliency picture.
# Matters: a saliency model that detects nothing returns a flat map. Whether it scores 0 or makes the mean over the
# pictures NaN depends on its position among the arguments, and a blank picture that was read from a file stops the
# evaluation.
# Seen on 2026-11-30:
#   CC(flat, map) = 0.0, CC(map, flat) = nan
#   SIM(blank, map): float 0.765, uint8 UFuncTypeError
#   MIT_KLDiv(blank, map): float 0.174, uint8 UFuncTypeError
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
# Installed without dependencies: the package imports PyTorch, but the metrics only need NumPy.
uv pip install --quiet --python "$dir/env" numpy==2.3.5
uv pip install --quiet --python "$dir/env" --no-deps pysaliency==0.2.22
"$dir/env/bin/python" -W ignore - <<'PY'
import importlib.util
import math
import sys
from pathlib import Path

import numpy as np

path = next(Path(folder) / "pysaliency" for folder in sys.path if (Path(folder) / "pysaliency").is_dir()) / "metrics.py"
spec = importlib.util.spec_from_file_location("metrics", path)
metrics = importlib.util.module_from_spec(spec)
spec.loader.exec_module(metrics)

saliency = np.random.default_rng(0).random((20, 30))
flat = np.full(saliency.shape, 0.5)
forth, back = metrics.CC(flat, saliency), metrics.CC(saliency, flat)
print(f"CC(flat, map) = {forth}, CC(map, flat) = {back}")
assert forth == 0 and math.isnan(back), "changed: the correlation with a flat map"


def of_blank(metric, dtype):
    try:
        return f"{metric(np.zeros(saliency.shape, dtype), saliency):.3f}"
    except TypeError as error:
        return type(error).__name__.lstrip("_")


for metric in (metrics.SIM, metrics.MIT_KLDiv):
    of_float, of_bytes = of_blank(metric, float), of_blank(metric, np.uint8)
    print(f"{metric.__name__}(blank, map): float {of_float}, uint8 {of_bytes}")
    assert of_float != of_bytes and of_bytes == "UFuncTypeError", f"changed: {metric.__name__} of a blank map"
PY
