#!/usr/bin/env bash
# autorank 1.3.0.
#
# Expected: `create_report` of two populations with equal values says that no significant difference was found.
# Happens: the report says "We reject the null hypothesis (p=nan)". The test has no p-value if all differences are 0,
# and the report treats every p that is not above alpha as significant. For right or wrong answers (0 and 1) it
# continues: "the median of alone is significantly larger than the median value of tools with a large effect size
# (gamma=nan)", although the medians are equal.
# Matters: the package writes the sentence for the paper. A model that gains nothing from its tools is reported as a
# model that loses by them, with a large effect.
# Seen on 2026-11-30 (40 questions, the same answers twice):
#   test: wilcoxon, p: nan
#   We reject the null hypothesis (p=nan) of Wilcoxon's signed rank test that population alone (MD=1.000+-0.000,
#     MAD=0.000) is not greater than population tools (MD=1.000+-0.000, MAD=0.000). Therefore, we assume that the
#     median of alone is significantly larger than the median value of tools with a large effect size (gamma=nan).
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Run outside of this clone, because its settings for uv leave out matplotlib.
cd "$dir"
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" autorank==1.3.0 matplotlib==3.11.2
"$dir/env/bin/python" -W ignore - <<'PY'
import contextlib
import io

import numpy as np
import pandas as pd
from autorank import autorank, create_report

right = np.array([1.0, 0.0, 1.0, 1.0] * 10)
text = io.StringIO()
with contextlib.redirect_stdout(text):
    result = autorank(pd.DataFrame({"alone": right, "tools": right}), alpha=0.05, verbose=False)
    create_report(result)
sentences = text.getvalue().strip().splitlines()
print(f"test: {result.omnibus}, p: {result.pvalue}")
print(sentences[-1])
assert "We reject the null hypothesis (p=nan)" in sentences[-1], "changed: the report of a test without p-value"
assert "significantly larger" in sentences[-1] and "large effect size" in sentences[-1], "changed: its conclusion"
PY
