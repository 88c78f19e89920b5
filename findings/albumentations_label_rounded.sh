#!/usr/bin/env bash
# albumentations 2.0.8, NumPy 2.4.6, opencv-python-headless 5.0.0.93.
#
# Expected: a field in `label_fields` is "joined with boxes": each box that is kept comes back with the value that it
# had. No transform changes a label, and a text label is unchanged.
# Happens: numbers are stored as float32 between the coordinates, so a whole number above 2 ** 24 is rounded, even if no
# transform is applied. An array of int64 comes back as int64, with other values; a list of int comes back as float.
# The labels of key points change in the same way.
# Matters: annotations are matched to their record by id after a crop has removed some boxes. COCO numbers its crowd
# regions from 900100000000, and ids from a clock or a database are as long. Two ids become one, there is no warning,
# and small ids of a test data set are right.
# Seen on 2026-12-01:
#   array of int64: [900100002613, 900100002614, 16777217, 5] -> [900099997696, 900099997696, 16777216, 5]
#   list of int: [900100002613, 900100002614, 16777217, 5] -> [900099997696.0, 900099997696.0, 16777216.0, 5.0]
#   list of str: ['900100002613', '900100002614', '16777217', '5'] -> ['900100002613', '900100002614', '16777217', '5']
#   array of int64, key points: [900100002613, 900100002614, 16777217, 5] -> [900099997696, 900099997696, 16777216, 5]
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" albumentations==2.0.8 numpy==2.4.6 opencv-python-headless==5.0.0.93
NO_ALBUMENTATIONS_UPDATE=1 "$dir/env/bin/python" -W ignore - <<'PY'
import albumentations
import numpy as np

IDS = [900100002613, 900100002614, 16777217, 5]
BOXES = [[left, 20, 30, 40] for left in (0, 10, 20, 30)]
PICTURE = np.zeros((100, 100, 3), np.uint8)


def ids_after(values):
    """The ids that come back from a pipeline without a transform."""
    boxes = albumentations.BboxParams(format="coco", label_fields=["ids"])
    result = albumentations.Compose([], bbox_params=boxes)(image=PICTURE, bboxes=BOXES, ids=values)
    assert len(result["bboxes"]) == len(BOXES)
    return result["ids"]


def ids_of_points(values):
    """The ids of key points that come back from a pipeline without a transform."""
    points = albumentations.KeypointParams(format="xy", label_fields=["ids"])
    corners = [box[:2] for box in BOXES]
    return albumentations.Compose([], keypoint_params=points)(image=PICTURE, keypoints=corners, ids=values)["ids"]


as_text = [str(number) for number in IDS]
array, numbers, text = ids_after(np.array(IDS)), ids_after(IDS), ids_after(as_text)
of_points = ids_of_points(np.array(IDS))
print("array of int64:", IDS, "->", array.tolist())
print("list of int:", IDS, "->", numbers)
print("list of str:", as_text, "->", text)
print("array of int64, key points:", IDS, "->", of_points.tolist())
assert list(text) == as_text, "changed: labels that are text"
assert array.dtype == np.int64, "changed: the type of an array"
assert array.tolist() != IDS and len(set(array.tolist())) == 3, "changed: whole numbers in an array are kept"
assert numbers != IDS, "changed: whole numbers in a list are kept"
assert of_points.tolist() == array.tolist(), "changed: labels of key points"
PY
