#!/usr/bin/env bash
# cohens-d 0.1.5, scipy 1.17.1 as the reference.
#
# Expected: Cohen's d of two independent groups is the difference of the means over the pooled standard deviation. The
# package returns it without a sign, so the order of the groups does not matter.
# Happens: `cohensd_2ind(a, b)` divides the squares of the first group by n - 1 and those of the second by n - 2. Swapping
# the groups changes the value, and both values are too small: `cohensd_2ind_from_stats` of the same package agrees with
# the t statistic. With three runs per model, the variance of the second one counts twice.
# Matters: models are usually compared over a few seeds, where the error is largest. An effect of 1.19 is reported as 0.85.
# Seen on 2026-11-30 (accuracy of two models over three seeds):
#   from the t statistic: 1.19
#   cohensd_2ind_from_stats: 1.19
#   cohensd_2ind(a, b): 0.85
#   cohensd_2ind(b, a): 1.17
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" cohens-d==0.1.5 numpy==2.4.6 scipy==1.17.1
"$dir/env/bin/python" -W ignore - <<'PY'
from statistics import mean, stdev

from cohens_d import cohensd_2ind, cohensd_2ind_from_stats
from scipy.stats import ttest_ind

A, B = [0.62, 0.64, 0.63], [0.54, 0.64, 0.58]

values = {
    "from the t statistic": abs(ttest_ind(A, B).statistic) * (1 / len(A) + 1 / len(B)) ** 0.5,
    "cohensd_2ind_from_stats": cohensd_2ind_from_stats(mean(A), mean(B), stdev(A), stdev(B), len(A), len(B)),
    "cohensd_2ind(a, b)": cohensd_2ind(A, B),
    "cohensd_2ind(b, a)": cohensd_2ind(B, A),
}
for name, value in values.items():
    print(f"{name}: {round(float(value), 2)}")
right, from_stats, forward, backward = map(float, values.values())
assert abs(right - from_stats) < 1e-9, "changed: cohensd_2ind_from_stats"
assert abs(forward - backward) > 0.1, "changed: the order of the groups"
assert forward < right - 0.1, "changed: cohensd_2ind"
PY
