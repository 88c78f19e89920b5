#!/usr/bin/env bash
# miseval 1.3.0 (segmentation metrics), scipy 1.15.3 as the reference.
#
# Expected: `evaluate(truth, prediction, metric="HD")` is the Hausdorff distance of two masks in pixels. A square that
# is found 30 pixels too low has a distance of 30.
# Happens: it is 0, the value of a perfect mask. The mask is passed to a function for lists of points, which takes each
# row of the mask as one point with as many coordinates as the image has columns. The position of a row in the image
# does not count. A square that is 30 pixels too far to the right gets 3.2 instead of 30.
# Matters: a tool that segments an object at the wrong height looks perfect.
# Seen on 2026-11-30 (64 x 64 pixels, a square of 10):
#   same place: miseval 0.0, scipy 0.0
#   30 lower: miseval 0.0, scipy 30.0
#   30 to the right: miseval 3.16, scipy 30.0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" miseval==1.3.0 scipy==1.15.3
"$dir/env/bin/python" -W ignore - <<'PY'
import numpy as np
from miseval import evaluate
from scipy.spatial.distance import directed_hausdorff


def square(y, x):
    mask = np.zeros((64, 64), int)
    mask[y : y + 10, x : x + 10] = 1
    return mask


def reference(one, two):
    points = np.argwhere(one), np.argwhere(two)
    return max(directed_hausdorff(*points)[0], directed_hausdorff(*points[::-1])[0])


truth = square(10, 10)
seen = {}
for name, mask in {"same place": truth, "30 lower": square(40, 10), "30 to the right": square(10, 40)}.items():
    seen[name] = round(float(evaluate(truth, mask, metric="HD")), 2), reference(truth, mask)
    print(f"{name}: miseval {seen[name][0]}, scipy {seen[name][1]}")
assert seen["same place"] == (0.0, 0.0), "changed: the same mask"
assert seen["30 lower"] == (0.0, 30.0), "changed: a mask that lies lower"
assert seen["30 to the right"][0] < 5 and seen["30 to the right"][1] == 30.0, "changed: a mask to the right"
PY
