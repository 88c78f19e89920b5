#!/usr/bin/env bash
# langchain-core 1.8.3 (the same with the agents of langchain 1.4), NumPy 2.4.
#
# Expected: the numbers that a tool returns reach the model, or there is an error. The documentation says that values
# which are not text are written as JSON.
# Happens: values that JSON cannot represent are converted by `str()`, without a warning. A NumPy scalar inside of a
# dict turns the whole dict into Python's notation with `np.float32(...)`. An array of over 1,000 values reaches the
# model with its middle cut out (`...`) and rounded to 8 digits.
# Matters: vision tools return arrays. The model reads six of 3,000 depths, and no log shows that the rest was never
# sent.
# Seen on 2026-11-28:
#   {'nearer': 'A', 'depth': np.float32(0.5)}
#   3000 depths: 6 numbers in the message
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" langchain-core==1.8.3 numpy==2.4.6
"$dir/env/bin/python" - <<'PY'
import json
import re

import numpy as np
from langchain_core.tools import tool


@tool
def nearer(image: str) -> dict:
    """Compare two points."""
    return {"nearer": "A", "depth": np.float32(0.5)}


@tool
def depths(image: str) -> np.ndarray:
    """Depth along a line."""
    return np.arange(3000) / 7


def message(called):
    """What the model reads of a call of this tool."""
    call = {"name": called.name, "args": {"image": "img:1"}, "id": "call-1", "type": "tool_call"}
    return called.invoke(call).content


text = message(nearer)
print(text)
try:
    json.loads(text)
except ValueError:
    pass
else:
    raise SystemExit("changed: a NumPy scalar is written as JSON")
assert "np.float32(0.5)" in text

text = message(depths)
numbers = re.findall(r"\d+\.\d*(?:e[+-]\d+)?", text)
print(f"3000 depths: {len(numbers)} numbers in the message")
assert "..." in text and len(numbers) < 20, "changed: the whole array reaches the model"
PY
