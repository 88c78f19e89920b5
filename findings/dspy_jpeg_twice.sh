#!/usr/bin/env bash
# dspy 3.4.1, pillow 13.0.0, numpy 2.4.6
#
# Expected: a JPEG file that is opened with Pillow and wrapped in `dspy.Image` reaches the model with its own pixels.
# Happens: it is compressed a second time, at Pillow's default quality of 75, whatever the quality of the file. A file
# of quality 98 shrinks to less than half, and some values change by more than 50 of 255. A PNG file keeps its pixels,
# and `dspy.Image.from_path` sends the bytes unchanged.
# Matters: whether a benchmark's pictures are sharp depends on how they were passed to dspy. Small letters, marks and
# texture suffer most, and another harness that sends the unchanged bytes gets other answers from the same model.
# Seen on 2026-11-30 (noise of 64 x 64 pixels):
#   opened.jpg: file 7002 bytes, sent 2837 bytes, largest difference 71
#   opened.png: file 12420 bytes, sent 12420 bytes, largest difference 0
#   path.jpg: file 7002 bytes, sent 7002 bytes, largest difference 0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" dspy==3.4.1 pillow==13.0.0 numpy==2.4.6
"$dir/env/bin/python" -W ignore - "$dir" <<'PY'
import base64
import io
import sys

import dspy
import numpy as np
from PIL import Image

noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), np.uint8))


def difference(name, options, wrap):
    path = f"{sys.argv[1]}/{name}"
    noise.save(path, **options)
    data = base64.b64decode(wrap(path).url.split(",")[1])
    sent, file = np.asarray(Image.open(io.BytesIO(data))).astype(int), np.asarray(Image.open(path)).astype(int)
    with open(path, "rb") as original:
        size = len(original.read())
    largest = int(np.abs(sent - file).max())
    print(f"{name}: file {size} bytes, sent {len(data)} bytes, largest difference {largest}")
    return largest


def opened(path):
    return dspy.Image(Image.open(path))


assert difference("opened.jpg", {"quality": 98}, opened) > 50, "changed: an opened JPEG"
assert difference("opened.png", {}, opened) == 0, "changed: an opened PNG"
assert difference("path.jpg", {"quality": 98}, dspy.Image.from_path) == 0, "changed: the path of a JPEG"
PY
