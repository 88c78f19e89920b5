#!/usr/bin/env bash
# uncertainty-toolbox 0.1.1.
#
# Expected: after `get_quantile_recalibrator(mean, std, truth)`, a share q of the true values lies below the quantile q, at
# least in the data that the recalibrator was fitted to.
# Happens: predictions that are too high become higher, and predictions that are too low become lower. The share of values
# below a quantile is computed from prediction minus truth instead of truth minus prediction, so the correction goes the
# wrong way and doubles the error. `get_proportion_under_quantile` of the same package gives 0.16 where 0.84 of the true
# values lie below. If the errors are symmetric around 0, nothing is seen, nor is it in intervals around the mean.
# Matters: the depths of a model that sees everything one metre too far move away by another metre. The calibration error
# of the package has the same wrong sign and falls to 0, as if the correction had worked.
# Seen on 2026-11-30 (true depth around 10 m, prediction 11 m, standard deviation 1 m; share of true values below):
#   quantile 0.1: 0.39 before, 0.76 after, 0.01 by the package
#   quantile 0.5: 0.84 before, 0.98 after, 0.16 by the package
#   quantile 0.9: 0.99 before, 1.0 after, 0.61 by the package
#   median depth: true 10.0, before 11.0, after 12.0
#   calibration error by the package: 0.26 before, 0.0 after
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Run outside of this clone, because its settings for uv leave out matplotlib.
cd "$dir"
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" uncertainty-toolbox==0.1.1 numpy==2.4.6 scikit-learn==1.9.1 scipy==1.17.1 \
  matplotlib==3.11.2
"$dir/env/bin/python" -W ignore - <<'PY'
from statistics import NormalDist

import numpy as np
from uncertainty_toolbox import metrics_calibration as calibration
from uncertainty_toolbox.recalibration import get_quantile_recalibrator, iso_recal

NUMBER = 2000
truth = np.array([NormalDist(10, 1).inv_cdf((i + 0.5) / NUMBER) for i in range(NUMBER)])
mean, std = np.full(NUMBER, 11.0), np.ones(NUMBER)
data = mean, std, truth
recalibrated = get_quantile_recalibrator(*data)


def share_below(bound):
    return round(float(np.mean(truth <= bound)), 2)


def error(model):
    value = calibration.mean_absolute_calibration_error(*data, recal_model=model, prop_type="quantile")
    return round(float(value), 2)


seen = {}
for q in (0.1, 0.5, 0.9):
    before, after = share_below(calibration.get_quantile(mean, std, q)), share_below(recalibrated(mean, std, q))
    seen[q] = before, after, round(calibration.get_proportion_under_quantile(*data, q), 2)
    print("quantile {}: {} before, {} after, {} by the package".format(q, *seen[q]))
medians = [np.median(truth), calibration.get_quantile(mean, std, 0.5)[0], recalibrated(mean, std, 0.5)[0]]
medians = [round(float(value), 1) for value in medians]
print("median depth: true {}, before {}, after {}".format(*medians))
model = iso_recal(*calibration.get_proportion_lists_vectorized(*data, prop_type="quantile"))
errors = error(None), error(model)
print("calibration error by the package: {} before, {} after".format(*errors))
for q, (before, after, counted) in seen.items():
    assert after > before > q, f"changed: the recalibrated quantile {q}"
    assert counted < q, f"changed: the counted share below the quantile {q}"
assert medians[2] > medians[1] > medians[0], "changed: the recalibrated median"
assert errors[1] < 0.02 < errors[0], "changed: the calibration error"
PY
