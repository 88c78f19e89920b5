#!/usr/bin/env bash
# seg-metrics 1.2.8.
#
# Expected: if one of two masks is empty, the distance of their surfaces is not defined: nan, infinity or an error.
# Happens: an object that was missed has a Hausdorff distance, a 95th percentile and a mean surface distance of 0, those of
# a perfect mask. So has an object that was found where there is none. The distance map of an empty mask is set to 0
# everywhere. Dice is 0, as it should be; the warning that the package gives is about precision and recall only.
# Matters: averaged over images, the distances improve with every object that a model fails to find.
# Seen on 2026-11-30 (64 x 64 pixels, a square of 10):
#   same place: dice 1.0, hd 0.0, hd95 0.0, msd 0.0
#   3 to the right: dice 0.7, hd 3.0, hd95 3.0, msd 1.5
#   missed: dice 0.0, hd 0.0, hd95 0.0, msd 0.0
#   found where nothing is: dice 0.0, hd 0.0, hd95 0.0, msd 0.0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Run outside of this clone, because its settings for uv leave out matplotlib.
cd "$dir"
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" seg-metrics==1.2.8 simpleitk==2.5.7 matplotlib==3.11.2
"$dir/env/bin/python" -W ignore - <<'PY'
import numpy as np
import seg_metrics.seg_metrics as sg

METRICS = ["dice", "hd", "hd95", "msd"]


def square(x):
    mask = np.zeros((64, 64), int)
    mask[10:20, x : x + 10] = 1
    return mask


def measure(truth, prediction):
    row = sg.write_metrics(labels=[1], gdth_img=truth, pred_img=prediction, metrics=METRICS)[0]
    return {name: round(float(row[name][0]), 2) for name in METRICS}


truth, empty = square(10), np.zeros((64, 64), int)
cases = {
    "same place": (truth, truth),
    "3 to the right": (truth, square(13)),
    "missed": (truth, empty),
    "found where nothing is": (empty, truth),
}
seen = {name: measure(*masks) for name, masks in cases.items()}
for name, row in seen.items():
    print(f"{name}: " + ", ".join(f"{metric} {value}" for metric, value in row.items()))
assert seen["3 to the right"]["hd"] == 3.0, "changed: a mask that lies to the right"
for name in ("missed", "found where nothing is"):
    assert seen[name] == dict.fromkeys(METRICS, 0.0), f"changed: {name}"
PY
