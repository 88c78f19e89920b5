#!/usr/bin/env bash
# datasets 5.2.0, Pillow 12.3.0, NumPy 2.4.6.
#
# Expected: an array with values over 255 in a column of type `Image` is kept, as one channel of uint16 is, or refused,
# as three channels of floats are.
# Happens: three channels of int32, int64 or uint16 are cast to uint8 modulo 256: 300 comes back as 44, and 256 as 0.
# The only notice is a line in the log about "downcasting".
# Matters: outputs of vision tools are stored in this way (16-bit colour, disparity in three channels, optical flow as
# in KITTI's PNG, identities of segments). The picture that is read back looks plausible but is wrong.
# Seen on 2026-11-29:
#   one channel, uint16: 300 -> 300
#   three channels, uint16: 300 -> 44
#   three channels, int64: 300 -> 44
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" datasets==5.2.0 pillow==12.3.0 numpy==2.4.6
HF_HOME="$dir/hub" HF_HUB_OFFLINE=1 "$dir/env/bin/python" -W ignore - <<'PY'
import datasets
import numpy as np

datasets.disable_progress_bars()


def stored(dtype, shape):
    """What a picture of value 300 everywhere holds after a column of images has stored it."""
    features = datasets.Features({"picture": datasets.Image()})
    rows = datasets.Dataset.from_dict({"picture": [np.full(shape, 300, dtype)]}, features=features)
    return int(np.asarray(rows[0]["picture"]).flat[0])


one = stored(np.uint16, (4, 4))
three = {name: stored(name, (4, 4, 3)) for name in ("uint16", "int64")}
print(f"one channel, uint16: 300 -> {one}")
for name, value in three.items():
    print(f"three channels, {name}: 300 -> {value}")
assert one == 300
assert set(three.values()) == {300 % 256}, "changed: values over 255 are kept or refused"
PY
