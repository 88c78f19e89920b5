#!/usr/bin/env bash
# confidenceinterval 1.0.4, scikit-learn 1.9.1 as the reference.
#
# Expected: the macro F1 of four answer letters is the same whether they are numbered 0 to 3 or 1 to 4.
# Happens: with numbers from 1, the package gives 0.761, while scikit-learn gives 0.951, as does the package with
# numbers from 0. It counts every number from 0 to the largest as a class, and a class without questions adds an F1 of 0
# to the mean. The interval (0.632 to 0.889) does not contain the right value. Macro recall of the same package does not
# change.
# Matters: VQA files often number their options from 1. The package exists to report metrics with intervals, its value looks
# plausible, and it gives no warning.
# Seen on 2026-11-30 (40 questions, 38 answered correctly):
#   macro F1, scikit-learn: 0.951
#   macro F1, numbered from 0: 0.951 (0.79, 1.112)
#   macro F1, numbered from 1: 0.761 (0.632, 0.889)
#   macro recall, numbered from 0 and 1: 0.95 0.95
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" confidenceinterval==1.0.4 scikit-learn==1.9.1
"$dir/env/bin/python" -W ignore - <<'PY'
from confidenceinterval import f1_score, recall_score
from sklearn.metrics import f1_score as reference

TRUTH = [0, 1, 2, 3] * 10
ANSWERS = [1, 1, 1, *TRUTH[3:]]


def value(metric, start):
    result, interval = metric([x + start for x in TRUTH], [x + start for x in ANSWERS], average="macro")
    return round(float(result), 3), tuple(round(float(end), 3) for end in interval)


right = round(float(reference(TRUTH, ANSWERS, average="macro")), 3)
print("macro F1, scikit-learn:", right)
seen = {start: value(f1_score, start) for start in (0, 1)}
for start, (result, interval) in seen.items():
    print(f"macro F1, numbered from {start}: {result} {interval}")
print("macro recall, numbered from 0 and 1:", value(recall_score, 0)[0], value(recall_score, 1)[0])
assert seen[0][0] == right, "changed: the value with classes numbered from 0"
assert seen[1][0] < right - 0.1, "changed: the value with classes numbered from 1"
assert value(recall_score, 0) == value(recall_score, 1), "changed: recall"
PY
