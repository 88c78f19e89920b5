#!/usr/bin/env bash
# torcheval 0.0.7, torch 2.15.0
#
# Expected: a model that gives every option the same score knows nothing, so with four options, `hit_rate` at k = 1 is
# near 0.25.
# Happens: it is 1.0, and `reciprocal_rank` is 1.0. The rank of the right option is the number of options with a higher
# score. If all scores are equal, there are no such options, so the right option is always first.
# Matters: a similarity model in half precision, or one that returns zeros after a failure, ties often, and each tie counts as
# a right answer. `multiclass_accuracy` of the same package takes one option and gives 0.25.
# Seen on 2026-11-30 (four options, right ones spread evenly, all scores equal):
#   hit_rate, k = 1: 1.0
#   reciprocal_rank: 1.0
#   multiclass_accuracy: 0.25
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" torcheval==0.0.7 torch==2.15.0
"$dir/env/bin/python" -W ignore - <<'PY'
import torch
from torcheval.metrics.functional import hit_rate, multiclass_accuracy, reciprocal_rank

scores, right = torch.zeros(40, 4), torch.arange(40) % 4
seen = {
    "hit_rate, k = 1": hit_rate(scores, right, k=1).mean(),
    "reciprocal_rank": reciprocal_rank(scores, right).mean(),
    "multiclass_accuracy": multiclass_accuracy(scores, right),
}
for name, value in seen.items():
    print(f"{name}: {float(value)}")
assert seen["hit_rate, k = 1"] == 1 and seen["reciprocal_rank"] == 1, "changed: equal scores"
assert seen["multiclass_accuracy"] == 0.25, "changed: multiclass_accuracy"
PY
