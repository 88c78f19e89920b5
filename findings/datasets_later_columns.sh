#!/usr/bin/env bash
# datasets 5.2.0.
#
# Expected: `Dataset.from_list(rows)` keeps every key that a row has, with null where a row lacks it, as pandas does;
# otherwise it raises an error.
# Happens: the columns are those of the first row. A key that only later rows have is dropped from all of them, without
# a warning. The same rows in another order give another data set.
# Matters: rows of an evaluation differ in important keys: only a few rows have `error`, `tool_calls` or `refusal`. If
# the first answer went well, the failures of all others are lost, and a count of errors is 0.
# Seen on 2026-11-29:
#   failure last: ['question', 'answer']; failure first: ['question', 'answer', 'error']
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" datasets==5.2.0
cd "$dir"
HF_HOME="$dir/hub" HF_HUB_OFFLINE=1 "$dir/env/bin/python" - <<'PY'
import datasets

datasets.disable_progress_bars()
good = {"question": "q1", "answer": "A"}
failed = {"question": "q2", "answer": None, "error": "timeout"}
last = datasets.Dataset.from_list([good, failed]).column_names
first = datasets.Dataset.from_list([failed, good]).column_names
print(f"failure last: {last}; failure first: {first}")
assert "error" in first
assert "error" not in last, "changed: columns of later rows are kept"
PY
