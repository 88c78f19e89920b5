#!/usr/bin/env bash
# torchvision 0.28.0 (`torchvision.transforms.v2`), PyTorch 2.13.0.
#
# Expected: flipping a picture and enlarging it give the same key points in either order, as they give the same pixels and
# the same bounding boxes.
# Happens: `resize` scales a key point as a position between pixels (x times 4), but `horizontal_flip` mirrors it as the
# index of a pixel (width - 1 - x). The two orders differ by the scale minus one: 3 pixels at four times the size. Boxes
# are mirrored at the width, so a key point on the left edge of a box is one pixel inside of the right edge afterwards.
# Matters: the order of two transforms decides a point's error at high resolution. Correspondence is scored in such
# pixels, and predictions that are averaged over a picture and its mirror image are pulled apart.
# Seen on 2026-11-30:
#   key point: enlarged, then mirrored 359; mirrored, then enlarged 356
#   box:       enlarged, then mirrored 360; mirrored, then enlarged 360
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" torch==2.13.0 torchvision==0.28.0 numpy==2.4.6
"$dir/env/bin/python" - <<'PY'
from torchvision import tv_tensors
from torchvision.transforms.v2.functional import horizontal_flip, resize

point = tv_tensors.KeyPoints([[10.0, 10.0]], canvas_size=(100, 100))
box = tv_tensors.BoundingBoxes([[10.0, 10.0, 20.0, 20.0]], format="XYXY", canvas_size=(100, 100))
size = [400, 400]

ends = []
for name, value, column in (("key point", point, 0), ("box", box, 2)):
    enlarged_first = float(horizontal_flip(resize(value, size))[0, column])
    mirrored_first = float(resize(horizontal_flip(value), size)[0, column])
    print(f"{name + ':':<10} enlarged, then mirrored {enlarged_first:.0f}; mirrored, then enlarged {mirrored_first:.0f}")
    ends.append((enlarged_first, mirrored_first))
(point_a, point_b), (box_a, box_b) = ends
assert box_a == box_b, "changed: boxes depend on the order"
assert point_a - point_b == 3.0, "changed: key points are mirrored as they are scaled"
PY
