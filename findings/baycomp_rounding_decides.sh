#!/usr/bin/env bash
# baycomp 1.0.3.
#
# Expected: `two_on_multiple(x, y)`, the probability that one of two models is better over several tasks, is (0.5, 0.5)
# if both models have the same scores.
# Happens: the first model is better with a probability of about 0.7 on ten tasks (0.77 on three). Each of the 50,000
# samples is 0.5 except for the rounding of a sum of products, and the function counts how often this rounding gives
# less than 0.5. A region of practical equivalence (`rope=0.01`) correctly gives (0, 1, 0).
# Matters: 0.7 reads as a tendency where there is none. The scores are equal, so the tendency always favours the first
# argument.
# Seen on 2026-11-30 (first better, equivalent, second better; the seed is fixed):
#   3 tasks: [0.77, 0.0, 0.23]
#   10 tasks: [0.68, 0.0, 0.32]
#   21 tasks: [0.69, 0.0, 0.31]
#   10 tasks, rope 0.01: [0.0, 1.0, 0.0]
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" baycomp==1.0.3
"$dir/env/bin/python" -W ignore - <<'PY'
import numpy as np
from baycomp import two_on_multiple


def probabilities(n, rope):
    scores = np.linspace(0.4, 0.9, n)
    return [round(float(p), 2) for p in two_on_multiple(scores, scores.copy(), rope=rope, random_state=1)]


seen = {n: probabilities(n, 0) for n in (3, 10, 21)}
for n, values in seen.items():
    print(f"{n} tasks: {values}")
print("10 tasks, rope 0.01:", probabilities(10, 0.01))
assert all(first > second + 0.2 for first, _, second in seen.values()), "changed: equal scores"
assert probabilities(10, 0.01) == [0.0, 1.0, 0.0], "changed: equal scores with a rope"
PY
