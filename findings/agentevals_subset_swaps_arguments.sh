#!/usr/bin/env bash
# agentevals 0.0.9, langchain-core 1.8.3.
#
# Expected: `tool_args_match_mode="superset"` accepts a call whose arguments contain those of the reference call, and
# "subset" accepts a call whose arguments are contained in those of the reference call, whichever mode compares the
# trajectories. A custom matcher gets the arguments of the output first and those of the reference second.
# Happens: with `trajectory_match_mode="subset"` the two sides are exchanged: "superset" accepts the call with fewer
# arguments and refuses the call with more, and a custom matcher gets the reference first. With "unordered" both calls
# are refused.
# Matters: "no tool beyond the reference, and each call with at least these arguments" is how one checks that a model
# named the right picture to its vision tools and called nothing else. That check passes exactly the calls that it
# should refuse.
# Seen on 2026-11-30 (accepted with more arguments than the reference, accepted with fewer):
#   strict     superset: (True, False) | subset: (False, True)
#   superset   superset: (True, False) | subset: (False, True)
#   subset     superset: (False, True) | subset: (True, False)
#   unordered  superset: (False, False) | subset: (False, False)
#   a matcher in mode subset gets first: {'image': 'img:1'}
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" agentevals==0.0.9 langchain-core==1.8.3
"$dir/env/bin/python" -W ignore - <<'PY'
import json

from agentevals.trajectory.match import create_trajectory_match_evaluator


def trajectory(**arguments):
    call = {"id": "1", "type": "function", "function": {"name": "crop", "arguments": json.dumps(arguments)}}
    return [
        {"role": "user", "content": "Which cup is nearer?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "cropped"},
        {"role": "assistant", "content": "The left one."},
    ]


def accepts(mode, of_arguments, output, reference):
    evaluator = create_trajectory_match_evaluator(trajectory_match_mode=mode, tool_args_match_mode=of_arguments)
    return evaluator(outputs=trajectory(**output), reference_outputs=trajectory(**reference))["score"]


FEWER, MORE = {"image": "img:1"}, {"image": "img:1", "box": [10, 20, 30, 40]}
seen = {}
for mode in ("strict", "superset", "subset", "unordered"):
    for of_arguments in ("superset", "subset"):
        seen[mode, of_arguments] = accepts(mode, of_arguments, MORE, FEWER), accepts(mode, of_arguments, FEWER, MORE)
    print(f"{mode:10}", " | ".join(f"{name}: {seen[mode, name]}" for name in ("superset", "subset")))
first = []
evaluator = create_trajectory_match_evaluator(
    trajectory_match_mode="subset",
    tool_args_match_overrides={"crop": lambda output, reference: bool(first.append(output)) or True},
)
evaluator(outputs=trajectory(**MORE), reference_outputs=trajectory(**FEWER))
print("a matcher in mode subset gets first:", first[0])
for mode in ("strict", "superset"):
    assert seen[mode, "superset"] == (True, False) and seen[mode, "subset"] == (False, True), f"changed: {mode}"
assert seen["subset", "superset"] == (False, True) and seen["subset", "subset"] == (True, False), "changed: subset"
assert seen["unordered", "superset"] == seen["unordered", "subset"] == (False, False), "changed: unordered"
assert first[0] == FEWER, "changed: the order of a matcher's arguments"
PY
