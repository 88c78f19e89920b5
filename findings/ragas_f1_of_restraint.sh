#!/usr/bin/env bash
# ragas 0.4.3, langchain-community 0.3.31 (with 0.4 this version of ragas cannot be imported).
#
# Expected: if the reference has no tool call and the model makes none, a metric of tool calls gives 1, as
# `ToolCallAccuracy` of the same package does.
# Happens: `ToolCallF1` gives 0.0, the same value as for a model that calls a wrong tool. A reference without calls can
# never be met: every answer to it scores 0.
# Matters: the question "does the model call tools only where they help?" needs such items. A model that correctly makes
# no call on half of the questions and calls correctly on the others has a mean of 0.5, the same as a model that calls a
# tool on every question.
# Seen on 2026-11-30 (reference, calls made: accuracy, F1):
#   no call, no call: 1.0 0.0
#   no call, a crop: 0.0 0.0
#   a crop, a crop: 1.0 1.0
#   a crop, no call: 0.0 0.0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" ragas==0.4.3 langchain-community==0.3.31
"$dir/env/bin/python" -W ignore - <<'PY'
import asyncio

from ragas.messages import AIMessage, HumanMessage, ToolCall
from ragas.metrics.collections import ToolCallAccuracy, ToolCallF1

CROP = [ToolCall(name="crop", args={"image": "img:1", "box": [10, 20, 30, 40]})]


async def values(reference, made):
    asked = [HumanMessage(content="Which cup is nearer?"), AIMessage(content="The left one.", tool_calls=made)]
    metrics = ToolCallAccuracy(), ToolCallF1()
    results = [await metric.ascore(user_input=asked, reference_tool_calls=reference) for metric in metrics]
    return tuple(float(result.value) for result in results)


seen = {}
for reference in ([], CROP):
    for made in (reference, [] if reference else CROP):
        names = tuple("a crop" if calls else "no call" for calls in (reference, made))
        seen[names] = asyncio.run(values(reference, made))
        print(f"{names[0]}, {names[1]}:", *seen[names])
assert seen["no call", "no call"] == (1.0, 0.0), "changed: no call expected, none made"
assert seen["no call", "a crop"] == (0.0, 0.0), "changed: no call expected, one made"
assert seen["a crop", "a crop"] == (1.0, 1.0), "changed: the expected call made"
assert seen["a crop", "no call"] == (0.0, 0.0), "changed: the expected call not made"
PY
