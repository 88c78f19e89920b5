#!/usr/bin/env bash
# mlxtend 0.25.0, statsmodels 0.15.0.
#
# Expected: McNemar's test of two models that answer every question alike finds no difference: p is 1.
# Happens: the default call of mlxtend (`mcnemar(table)`) gives a statistic of infinity and p = 0.0, the strongest evidence
# there can be. The continuity correction subtracts 1 from a difference of 0, squares it and divides by 0 discordant pairs.
# statsmodels does the same with `exact=False`; its default is the exact test, which gives 1, as mlxtend's does.
# Matters: a model that may call tools but never does is the most common null result of such a study. A loop over tasks
# marks it as highly significant, and the only hint is NumPy's warning of a division by zero.
# Seen on 2026-11-30 (20 questions, both models right on the same 17):
#   mlxtend: p = 0.0
#   mlxtend, exact: p = 1.0
#   statsmodels, exact=False: p = 0.0
#   statsmodels: p = 1.0
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
# Run outside of this clone, because its settings for uv leave out matplotlib.
cd "$dir"
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" mlxtend==0.25.0 statsmodels==0.15.0 matplotlib==3.11.2
"$dir/env/bin/python" -W ignore - <<'PY'
import numpy as np
from mlxtend.evaluate import mcnemar, mcnemar_table
from statsmodels.stats.contingency_tables import mcnemar as other

truth = np.array([0, 1] * 10)
alone = np.where(np.arange(20) < 3, 1 - truth, truth)
table = mcnemar_table(truth, alone, alone.copy())
p = {
    "mlxtend": mcnemar(table)[1],
    "mlxtend, exact": mcnemar(table, exact=True)[1],
    "statsmodels, exact=False": other(table, exact=False).pvalue,
    "statsmodels": other(table).pvalue,
}
for name, value in p.items():
    print(f"{name}: p = {float(value)}")
assert p["mlxtend"] == 0 and p["statsmodels, exact=False"] == 0, "changed: without discordant pairs p is not 0"
assert p["mlxtend, exact"] == 1 and p["statsmodels"] == 1, "changed: the exact tests"
PY
