#!/usr/bin/env bash
# datasets 5.2.0, pyarrow 26.0.1.
#
# Expected: `load_dataset("parquet", ...)` reads a file that pyarrow writes and that every other reader of parquet
# reads.
# Happens: a column of Arrow's type `map` ends the load of the whole file with a ValueError. Tables of results often
# have such columns (metric name to value, group to score). The same pairs load as a list of structs.
# Matters: results of an evaluation that are exported with a map column can neither be opened by `datasets` nor shown in
# the hub's viewer, while pandas, polars and DuckDB read them.
# Seen on 2026-11-28:
#   ValueError: Arrow type map<string, double ('scores')> does not have a datasets dtype equivalent.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
uv venv --quiet --python 3.11 "$dir/env"
uv pip install --quiet --python "$dir/env" datasets==5.2.0 pyarrow==26.0.1
cd "$dir"
HF_HOME="$dir/hub" HF_HUB_OFFLINE=1 "$dir/env/bin/python" - <<'PY'
import datasets
import pyarrow as pa
import pyarrow.parquet as pq

datasets.disable_progress_bars()
rows = [[("depth", 1.0)], [("depth", 0.0), ("jigsaw", 1.0)]]
pq.write_table(pa.table({"scores": pa.array(rows, pa.map_(pa.string(), pa.float64()))}), "map.parquet")
pairs = [[{"key": key, "value": value} for key, value in row] for row in rows]
pq.write_table(pa.table({"scores": pairs}), "pairs.parquet")

assert pq.read_table("map.parquet").num_rows == 2
assert len(datasets.load_dataset("parquet", data_files="pairs.parquet", split="train")) == 2
try:
    datasets.load_dataset("parquet", data_files="map.parquet", split="train")
except ValueError as error:
    print(f"ValueError: {error}")
else:
    raise SystemExit("changed: map columns load")
PY
