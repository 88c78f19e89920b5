#!/usr/bin/env bash
# confidenceinterval 1.0.5 (numpy 2.4.6, scipy 1.17.1, scikit-learn 1.9.1).
#
# Expected: the 95 % interval of a macro F1, computed by the delta method from the covariance of the confusion matrix
# (Takahashi et al., Applied Intelligence 52, 2022, as the package says), agrees with the bootstrap for many questions, and
# has width 0 where every prediction is right: all derivatives are then 0.
# Happens: the interval is about 1.5 times as wide as the bootstrap's for 3,000 questions, and covers the true value in more
# than 99 % of samples. For predictions that are all right it reaches from 0.979 to 1.021. The macro precision and recall
# of the same package agree with the bootstrap.
# Matters: macro F1 is a usual score of multiple-choice benchmarks. A paper that prints this interval calls real differences
# between models open, and its upper limits can be above 1.
# Seen on 2026-11-30 (3 classes, 3,000 questions, 30 % wrong):
#   f1: 0.678 to 0.726, bootstrap 0.685 to 0.717
#   recall: 0.687 to 0.717, bootstrap 0.686 to 0.718
#   f1, all right: 0.979 to 1.021
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" \
  confidenceinterval==1.0.5 numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1
"$dir/env/bin/python" -W ignore - <<'PY'
import confidenceinterval
import numpy as np
from sklearn.metrics import f1_score, recall_score

N = 3000
rng = np.random.default_rng(0)
truth = np.tile([0, 1, 2], N // 3)
predicted = truth.copy()
wrong = rng.random(N) < 0.3
predicted[wrong] = (predicted[wrong] + 1 + rng.integers(0, 2, wrong.sum())) % 3


def bootstrap(metric):
    samples = [rng.integers(0, N, N) for _ in range(500)]
    values = [metric(truth[rows], predicted[rows], average="macro") for rows in samples]
    return np.quantile(values, [0.025, 0.975])


width = {}
for name, ours, metric in (
    ("f1", confidenceinterval.f1_score, f1_score),
    ("recall", confidenceinterval.recall_score, recall_score),
):
    value, (low, high) = ours(truth, predicted, average="macro")
    assert abs(value - metric(truth, predicted, average="macro")) < 1e-6
    expected = bootstrap(metric)
    width[name] = (high - low) / (expected[1] - expected[0])
    print(f"{name}: {low:.3f} to {high:.3f}, bootstrap {expected[0]:.3f} to {expected[1]:.3f}")
_, (low, high) = confidenceinterval.f1_score(truth, truth, average="macro")
print(f"f1, all right: {low:.3f} to {high:.3f}")
assert 0.85 < width["recall"] < 1.15, "changed: the interval of the macro recall"
assert width["f1"] > 1.3, "changed: the interval of the macro F1"
assert high > 1.01, "changed: the interval of predictions that are all right"
PY
