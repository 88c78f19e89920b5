"""Read an export with another program, in the interpreter in which it is installed, without code of this project.

    PYTHON bench/_exchange_readers.py READER PATH > reading.json

It prints the number of rows that the program reads, and the mean score that the program computes or finds in them (null
if the format has none). lmms-eval and VLMEvalKit import much more than their readers need, so their installed files are
parsed and only the functions named here are executed.
"""

import ast
import json
import logging
import os.path as osp
import re
import string
import subprocess
import sys
import sysconfig
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

Reading = dict[str, Any]


def execute(space: dict[str, Any], file: str, *names: str) -> None:
    """Execute the functions called `names` from an installed file in the namespace `space`."""
    source = (Path(sysconfig.get_paths()["purelib"]) / file).read_text(encoding="utf-8")
    parts = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name in names]
    if len(parts) != len(names):
        raise SystemExit(f"{file} lacks some of {', '.join(names)}: it is not the pinned version")
    exec(compile(ast.Module(parts, []), file, "exec"), space)  # noqa: S102 - functions of a package that we installed


def mean(values: list[float]) -> float | None:
    """Return the mean, or None if there are no values."""
    return sum(values) / len(values) if values else None


def read_lmms_eval(path: Path) -> Reading:
    """Read with lmms-eval's `load_baseline`, which compares a new run with the samples of an old one."""
    from typing import Optional

    space: dict[str, Any] = {"json": json, "os": __import__("os"), "eval_logger": logging, "BASELINE_REGISTRY": {}}
    space |= {"Any": Any, "Dict": dict, "Optional": Optional, "Tuple": tuple}
    functions = "load_baseline", "_load_baseline_from_local", "_extract_score_from_sample"
    execute(space, "lmms_eval/baselines/loader.py", *functions)
    scores: list[float] = []
    for file in sorted(path.rglob("*_samples_*.jsonl")):
        by_id, results = space["load_baseline"](str(file), file.stem.partition("_samples_")[2])
        if results is None:
            raise SystemExit(f"{file}: lmms-eval finds no results file beside these samples")
        scores += by_id.values()
    return {"rows": len(scores), "score": mean(scores)}


def read_vlmevalkit(path: Path) -> Reading:
    """Read with `load`, `eval_vanilla` without a judge, and `report_acc`, which evaluate multiple choice."""
    import copy
    from collections import Counter

    import numpy as np
    import pandas as pd  # type: ignore[import-untyped,unused-ignore]

    space: dict[str, Any] = {"re": re, "os": __import__("os"), "osp": osp, "string": string, "json": json, "pd": pd}
    space |= {"cp": copy, "Counter": Counter, "np": np, "defaultdict": defaultdict, "MMB_abbrs": {}}
    # The language of a question only selects the judge's prompt; no judge is used here.
    space |= {"cn_string": lambda text: False, "build_option_str": str}
    execute(space, "vlmeval/smp/file.py", "load")
    execute(space, "vlmeval/utils/matching_util.py", "can_infer_option", "can_infer_text", "can_infer")
    functions = "build_choices", "build_prompt", "extract_answer_from_item", "eval_vanilla", "report_acc"
    execute(space, "vlmeval/dataset/utils/multiple_choice.py", *functions)
    sheet = space["load"](str(path))
    sheet["GT"] = sheet["answer"]
    sheet["hit"] = [space["eval_vanilla"](None, sheet.iloc[row])["hit"] for row in range(len(sheet))]
    return {"rows": len(sheet), "score": float(space["report_acc"](sheet)["Overall"].iloc[0])}


def read_inspect(path: Path) -> Reading:
    """Read with `read_eval_log` and the data frame of samples."""
    from inspect_ai.analysis import samples_df  # type: ignore[import-not-found,unused-ignore]
    from inspect_ai.log import read_eval_log  # type: ignore[import-not-found,unused-ignore]

    log = read_eval_log(str(path))
    samples = log.samples or []
    scores = [float(score.value) for sample in samples for score in (sample.scores or {}).values()]
    frame = samples_df(str(path), quiet=True)
    if len(frame) != len(samples):
        raise SystemExit(f"{path}: {len(samples)} samples in the log, {len(frame)} in the data frame")
    return {"rows": len(samples), "score": mean(scores)}


def read_datasets(path: Path) -> Reading:
    """Read a folder, or a file by its suffix, with `datasets.load_dataset`."""
    import tempfile

    from datasets import load_dataset  # type: ignore[import-not-found,unused-ignore]

    with tempfile.TemporaryDirectory() as cache:
        if path.is_dir():
            rows = load_dataset(str(path), cache_dir=cache)["train"]
        else:
            rows = load_dataset(path.suffix[1:], data_files=str(path), cache_dir=cache, split="train")
        return {"rows": len(rows), **_score_of([dict(row) for row in rows])}


def read_pandas(path: Path) -> Reading:
    """Read with `read_csv` or `read_parquet`."""
    import pandas as pd

    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return {"rows": len(frame), **_score_of(frame.to_dict("records"))}


def read_polars(path: Path) -> Reading:
    """Read with `read_csv` or `read_parquet`."""
    import polars as pl  # type: ignore[import-not-found,unused-ignore]

    frame = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    return {"rows": frame.height, **_score_of(frame.to_dicts())}


def read_duckdb(path: Path) -> Reading:
    """Query a file by its name."""
    import duckdb  # type: ignore[import-not-found,unused-ignore]

    rows = duckdb.sql(f"SELECT * FROM '{path}'").fetchall()  # noqa: S608 - a path that we made
    names = [column[0] for column in duckdb.sql(f"DESCRIBE SELECT * FROM '{path}'").fetchall()]  # noqa: S608
    return {"rows": len(rows), **_score_of([dict(zip(names, row, strict=True)) for row in rows])}


def read_openpyxl(path: Path) -> Reading:
    """Read the rows of a workbook below the header."""
    from openpyxl import load_workbook  # type: ignore[import-untyped,unused-ignore]

    return {"rows": load_workbook(path, read_only=True).worksheets[0].max_row - 1, "score": None}


def read_every_eval_ever(path: Path) -> Reading:
    """Run the authors' `every_eval_ever validate` with relative paths, then from the root folder with absolute ones."""
    files = sorted(path.glob("data/*/*/*/*"))
    program = Path(sys.executable).with_name("every_eval_ever")
    below = [file.relative_to(path) for file in files]
    for folder, names in ((path, below), (Path("/"), [file.resolve() for file in files])):
        command = [program, "validate", "--format", "json", *names]
        result = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
        if result.returncode:
            raise SystemExit(
                f"every_eval_ever refuses files of {path}:\n{result.stdout[-2000:]}{result.stderr[-2000:]}"
            )
        if [file["valid"] for file in json.loads(result.stdout)] != [True] * len(files):
            raise SystemExit(f"every_eval_ever did not check each of {len(files)} files")
    (value,) = (file for file in files if file.suffix == ".json")
    results = json.loads(value.read_text(encoding="utf-8"))["evaluation_results"]
    rows = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files if file.suffix == ".jsonl")
    return {"rows": rows, "score": results[0]["score_details"]["score"]}


def _score_of(rows: list[dict[str, Any]]) -> Reading:
    """Return the mean of a table's score column: `correct` if the table has it, else `score`."""
    name = next((name for name in ("correct", "score") if rows and name in rows[0]), None)
    return {"score": None if name is None else mean([float(row[name]) for row in rows if row[name] is not None])}


READERS: dict[str, Callable[[Path], Reading]] = {
    name.removeprefix("read_"): value for name, value in list(globals().items()) if name.startswith("read_")
}


if __name__ == "__main__":
    json.dump(READERS[sys.argv[1]](Path(sys.argv[2])), sys.stdout)
