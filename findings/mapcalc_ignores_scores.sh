#!/usr/bin/env bash
# mapcalc 0.2.2 (mean average precision of boxes), mean-average-precision 2024.1.5.0 as the reference.
#
# Expected: average precision takes the boxes from the highest score to the lowest, so the order of the list has no
# influence, and a wrong box with a higher score than the right one halves the value.
# Happens: the scores are accepted but never used, and the boxes count in the order of the list. If the wrong box has
# the score 0.9 and the right box 0.3, the value is 1.0 if the right box comes first. If the right box has 0.9 and the
# wrong box 0.1, the value is 0.5 if the wrong box comes first. The README does not ask for a sorted list.
# Matters: a detector that lists boxes from left to right, or by class, gets a value that does not depend on its scores.
# Seen on 2026-11-30 (one object, two boxes):
#   right 0.3, wrong 0.9, right box first: mapcalc 1.0, reference 0.5
#   right 0.3, wrong 0.9, wrong box first: mapcalc 0.5, reference 0.5
#   right 0.9, wrong 0.1, right box first: mapcalc 1.0, reference 1.0
#   right 0.9, wrong 0.1, wrong box first: mapcalc 0.5, reference 1.0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" mapcalc==0.2.2 mean-average-precision==2024.1.5.0
"$dir/env/bin/python" -W ignore - <<'PY'
import numpy as np
from mapcalc import calculate_map
from mean_average_precision import MetricBuilder

RIGHT, WRONG = [0, 0, 20, 20], [50, 50, 70, 70]


def reference(boxes, scores):
    metric = MetricBuilder.build_evaluation_metric("map_2d", async_mode=False, num_classes=1)
    rows = [[*box, 0, score] for box, score in zip(boxes, scores, strict=True)]
    metric.add(np.array(rows, float), np.array([[*RIGHT, 0, 0, 0]], float))
    return float(metric.value(iou_thresholds=0.5)["mAP"])


def value(boxes, scores):
    truth = {"boxes": [RIGHT], "labels": [1]}
    return float(calculate_map(truth, {"boxes": boxes, "labels": [1, 1], "scores": scores}, 0.5))


seen = []
for right, wrong in ((0.3, 0.9), (0.9, 0.1)):
    for boxes, scores in (([RIGHT, WRONG], [right, wrong]), ([WRONG, RIGHT], [wrong, right])):
        first = "right" if boxes[0] is RIGHT else "wrong"
        seen.append((value(boxes, scores), reference(boxes, scores)))
        print(f"right {right}, wrong {wrong}, {first} box first: mapcalc {seen[-1][0]}, reference {seen[-1][1]}")
assert [mapcalc for mapcalc, _ in seen] == [1.0, 0.5, 1.0, 0.5], "changed: mapcalc"
assert [other for _, other in seen] == [0.5, 0.5, 1.0, 1.0], "changed: the reference"
PY
