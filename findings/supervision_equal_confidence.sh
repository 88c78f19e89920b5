#!/usr/bin/env bash
# supervision 0.31.2: `Detections.from_vlm` and `supervision.metrics.MeanAveragePrecision`.
#
# Expected: the boxes that a vision language model writes have no confidence, because the model gives none (Gemini's
# replies get None), or a metric that ranks by confidence says that it cannot rank them.
# Happens: every box in Qwen's replies gets the confidence 1.0. Mean average precision ranks by confidence and breaks
# ties by order, so the same two replies score 1.0 with the pictures in one order and 0.33 in the other.
# Matters: mAP is the number that people print beside specialist detectors. For Qwen it depends on the order of the
# files in the folder.
# Seen on 2026-11-28:
#   confidence of a box: 1.0
#   mAP50, right reply first: 1.00, wrong reply first: 0.33
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" supervision==0.31.2
"$dir/env/bin/python" -W ignore - <<'PY'
import json

import numpy as np
import supervision as sv
from supervision.metrics import MeanAveragePrecision

SIZE = (100, 100)


def reply(*boxes):
    """A reply of Qwen2.5-VL with these boxes of a dog, read by supervision."""
    text = json.dumps([{"bbox_2d": box, "label": "dog"} for box in boxes])
    return sv.Detections.from_vlm(sv.VLM.QWEN_2_5_VL, text, input_wh=SIZE, resolution_wh=SIZE, classes=["dog"])


def map50(*pairs):
    """Mean average precision at IoU 0.5 over pictures in this order."""
    metric = MeanAveragePrecision()
    metric.update([predicted for predicted, _ in pairs], [target for _, target in pairs])
    return metric.compute().map50


dog = [0, 0, 10, 10]
with_dog = sv.Detections(xyxy=np.array([dog], float), class_id=np.array([0]))
without = sv.Detections(xyxy=np.zeros((0, 4)), class_id=np.zeros(0, int))
right = (reply(dog), with_dog)
wrong = (reply(dog, [50, 50, 90, 90]), without)

print("confidence of a box:", right[0].confidence[0])
first, last = map50(right, wrong), map50(wrong, right)
print(f"mAP50, right reply first: {first:.2f}, wrong reply first: {last:.2f}")
assert right[0].confidence.tolist() == [1.0], "changed: boxes of Qwen have no made-up confidence"
assert first == 1.0 and last < 0.5, "changed: the order of the pictures does not matter"
PY
