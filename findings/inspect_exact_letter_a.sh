#!/usr/bin/env bash
# inspect-ai 0.3.285: the scorers `exact` and `f1`.
#
# Expected: `exact` "normalizes the text of the answer and target(s)" and returns CORRECT "when the answer is an exact
# match to one or more targets". The documentation does not say what normalizing leaves out. The reply "A" is right if
# the target is "A", as "B" is for "B", and the reply "5" is wrong if the target is "-5".
# Happens: "A" is wrong for "A", in both scorers. Both texts lose their articles, the letter A counts as one, and a
# target without any other word matches nothing. A longer text loses its letter, so "Point" is right for "Point A". A
# minus sign is a separator, so "5" is right for "-5".
# Matters: with the letter of an option as target, every question whose answer is A is lost, and no model can score more
# than the share of B, C and D. Which options lose depends on where the data put the right one, so two versions of a
# benchmark with shuffled options cannot be compared. Each score looks like an ordinary mistake of the model.
# Seen on 2026-12-01:
#   target 'A', reply 'A': exact I, f1 0.0
#   target 'B', reply 'B': exact C, f1 1.0
#   target 'Point A', reply 'Point': exact C, f1 1.0
#   target 'Point B', reply 'Point': exact I, f1 0.67
#   target '-5', reply '5': exact C, f1 1.0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" inspect-ai==0.3.285
"$dir/env/bin/python" -W ignore - <<'PY'
import asyncio

from inspect_ai.model import ModelOutput
from inspect_ai.scorer import Target, exact, f1
from inspect_ai.solver import TaskState

PAIRS = [("A", "A"), ("B", "B"), ("Point A", "Point"), ("Point B", "Point"), ("-5", "5")]


async def scores(target, reply):
    """What both scorers give the reply of a model."""
    output = ModelOutput.from_content("mockllm/model", reply)
    state = TaskState(model="mockllm/model", sample_id=1, epoch=1, input="", messages=[], output=output)
    return tuple([(await scorer(state, Target(target))).value for scorer in (exact(), f1())])


seen = {pair: asyncio.run(scores(*pair)) for pair in PAIRS}
for (target, reply), (exactly, overlap) in seen.items():
    print(f"target {target!r}, reply {reply!r}: exact {exactly}, f1 {overlap}")
assert seen["B", "B"] == ("C", 1.0) and seen["Point B", "Point"][0] == "I"
assert seen["A", "A"] == ("I", 0.0), "changed: the letter A can be right"
assert seen["Point A", "Point"] == ("C", 1.0), "changed: the letter A is kept in a longer text"
assert seen["-5", "5"][0] == "C", "changed: a minus sign is kept"
PY
