#!/usr/bin/env bash
# continuous-eval 0.3.14.post2
#
# Expected: `ToolSelectionAccuracy` of a model that makes exactly the expected calls is 1.
# Happens: if two of the expected calls are equal, it is 0.5. The calls are compared as sets, in which equal calls count
# once, but the number of matches is divided by the number of expected calls. With `ignore_kwargs=True` all calls of one
# tool are equal, even two crops of different boxes. With `order_sensitive=True` the value is 1.
# Matters: a vision model with tools should compare two regions with two crops, or two points with two depth readings.
# The metric halves the value of a model that does so, and gives the same value to a model that crops once.
# Seen on 2026-11-30 (two crops expected):
#   both crops: 1.0
#   both crops, names only: 0.5
#   one crop, names only: 0.5
#   both crops, names only, in order: 1.0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" continuous-eval==0.3.14.post2
"$dir/env/bin/python" -W ignore - <<'PY'
from continuous_eval.metrics.tools.match import ToolSelectionAccuracy

LEFT = {"name": "crop", "kwargs": {"box": [0, 0, 50, 50]}}
RIGHT = {"name": "crop", "kwargs": {"box": [50, 0, 100, 50]}}


def score(made, **options):
    return ToolSelectionAccuracy(**options).compute(tools=made, ground_truths=[LEFT, RIGHT])["score"]


seen = {
    "both crops": score([LEFT, RIGHT]),
    "both crops, names only": score([LEFT, RIGHT], ignore_kwargs=True),
    "one crop, names only": score([LEFT], ignore_kwargs=True),
    "both crops, names only, in order": score([LEFT, RIGHT], ignore_kwargs=True, order_sensitive=True),
}
for name, value in seen.items():
    print(f"{name}: {value}")
assert seen["both crops"] == 1.0 and seen["both crops, names only, in order"] == 1.0, "changed: the calls in full"
assert seen["both crops, names only"] == 0.5 == seen["one crop, names only"], "changed: a tool that is called twice"
PY
