"""Check how other programs read each export of a run, and write the table in docs/exchange.md.

    uv run python -m bench.exchange                # makes a run, exports it, runs the readers, writes the page
    uv run python -m bench.exchange --run RUN      # uses an existing run whose model alone answered without failures
    uv run python -m bench.exchange --page         # writes the table again from the committed results

The readers are installed as pinned packages into temporary environments; this needs uv, a package index, and Python
3.11 and 3.12. `hybrid score` reads the same files back. Not part of CI.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from bench._frame import options
from hybrid.display.tables import Column, Table, as_markdown

HERE: Final = Path(__file__).parent
RESULTS: Final = HERE / "results" / "exchange.json"
PAGE: Final = HERE.parent / "docs" / "exchange.md"
BEGIN: Final = "<!-- readers, by `python -m bench.exchange` -->\n\n"
END: Final = "\n<!-- end of readers -->"
TABLES: Final = ("datasets==4.4.1", "pandas==2.3.3", "openpyxl==3.1.5", "polars==1.35.2", "duckdb==1.4.2", "Pillow")
# For each environment, its Python and packages. Only single functions of lmms-eval and VLMEvalKit are run, and these
# need only the packages named here.
ENVIRONMENTS: Final[Mapping[str, tuple[str, Sequence[str]]]] = {
    "lmms-eval": ("3.11", ("--no-deps", "lmms-eval==0.7.3")),
    "vlmevalkit": ("3.11", ("--no-deps", "ms-vlmeval==0.0.20")),
    # The export is also written in this environment, because Inspect needs older packages than this project's other
    # environments.
    "inspect": ("3.11", ("-e", f"{HERE.parent}[inspect]", "inspect-ai==0.3.285")),
    "every-eval-ever": ("3.12", ("every-eval-ever==0.3.0",)),
    "tables": ("3.11", TABLES),
}
# Further packages, for VLMEvalKit's eval_vanilla and load, and for Inspect's data frames.
MORE: Final[Mapping[str, Sequence[str]]] = {
    "vlmevalkit": ("pandas==2.3.3", "openpyxl==3.1.5", "validators==0.35.0"),
    "inspect": ("pandas==2.3.3", "pyarrow"),
}
SOLVER: Final = "mllm"
# Conversations are exported from a model that was offered tools.
WITH_TOOLS: Final[Mapping[str, str]] = {"conversations": "controller", "sharegpt": "controller"}


@dataclass(frozen=True)
class Reader:
    """A program that reads an export."""

    # Name on the page, with the functions that are run.
    title: str
    function: str
    # Names of the reader in _exchange_readers.py and of the environment; empty for `hybrid score`.
    reader: str = ""
    environment: str = ""


OURS: Final = Reader("`hybrid score`", "")
LMMS: Final = Reader("lmms-eval 0.7.3", "`load_baseline`", "lmms_eval", "lmms-eval")
KIT: Final = Reader("ms-vlmeval 0.0.20", "`load`, `eval_vanilla`, `report_acc`", "vlmevalkit", "vlmevalkit")
INSPECT: Final = Reader("inspect-ai 0.3.285", "`read_eval_log`, `samples_df`", "inspect", "inspect")
EVER: Final = Reader("every-eval-ever 0.3.0", "`validate`, from two folders", "every_eval_ever", "every-eval-ever")
DATASETS: Final = Reader("datasets 4.4.1", "`load_dataset`", "datasets", "tables")
PANDAS: Final = Reader("pandas 2.3.3", "`read_csv`, `read_parquet`", "pandas", "tables")
POLARS: Final = Reader("polars 1.35.2", "`read_csv`, `read_parquet`", "polars", "tables")
DUCKDB: Final = Reader("duckdb 1.4.2", "`SELECT * FROM`", "duckdb", "tables")
OPENPYXL: Final = Reader("openpyxl 3.1.5", "`load_workbook`", "openpyxl", "tables")
FILES: Final = (PANDAS, POLARS, DUCKDB, DATASETS)
# The format, what is exported, and the readers.
EXPORTS: Final[Sequence[tuple[str, str, Sequence[Reader]]]] = (
    ("lmms_eval", "logs", (LMMS, OURS)),
    ("vlmevalkit", "sheet.xlsx", (KIT, OPENPYXL, OURS)),
    ("vlmevalkit", "sheet.tsv", (KIT, OURS)),
    ("inspect", "log.eval", (INSPECT, OURS)),
    # Inspect lists a .json file only if its name begins with a time.
    ("inspect", "2026-01-01T00-00-00_log.json", (INSPECT, OURS)),
    ("conversations", "conversations", (DATASETS,)),
    ("sharegpt", "sharegpt", (DATASETS,)),
    ("parquet", "run.parquet", FILES),
    ("table", "table.csv", FILES),
    ("table", "table.parquet", FILES),
    ("every_eval_ever", "shared", (EVER, OURS)),
)


@dataclass(frozen=True)
class Row:
    """One reader of one export. Scores are shares in 0..1, or None if the format has none."""

    form: str
    suffix: str
    reader: str
    function: str
    rows: int
    score: float | None
    # The result of `hybrid score RUN`.
    score_of_run: float


def hybrid(folder: Path, *words: object, python: Path = Path(sys.executable)) -> str:
    """Run one of our commands in `folder` and return its output. Raises `SystemExit` if it fails."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    command: list[str | Path] = [python, "-m", "hybrid", *map(str, words)]
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode:
        raise SystemExit(f"hybrid {' '.join(map(str, words))} ended with {result.returncode}:\n{result.stderr[-2000:]}")
    return result.stdout


def make_run(folder: Path) -> Path:
    """Ask the demonstration model generated questions, with tools and without."""
    tasks = "--task", "Jigsaw", "--task", "Relative_Depth", "--limit", "12", "--backend", "classical"
    solvers = "--solver", SOLVER, "--solver", "controller"
    hybrid(folder, "run", "blink", "--data", "sample", *tasks, "--model", "embedded", *solvers, "--out", "run")
    return folder / "run"


def python_of(environment: str, folder: Path) -> Path:
    """Return the interpreter of an environment below `folder`, which is created on first use."""
    python = folder / environment / "bin" / "python"
    if not python.exists():
        version, packages = ENVIRONMENTS[environment]
        subprocess.run(["uv", "venv", "--quiet", "--python", version, folder / environment], check=True)  # noqa: S603, S607
        for names in (packages, MORE.get(environment, ())):
            if names:
                subprocess.run(["uv", "pip", "install", "--quiet", "--python", python, *names], check=True)  # noqa: S603, S607
    return python


def read_there(reader: Reader, path: Path, environments: Path) -> Mapping[str, Any]:
    """Return what a pinned package reads in an export."""
    command: list[str | Path] = [
        python_of(reader.environment, environments),
        "-I",
        HERE / "_exchange_readers.py",
        reader.reader,
        path,
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode:
        raise SystemExit(f"{reader.title} failed on {path.name}:\n{result.stderr[-2000:]}")
    reading: Mapping[str, Any] = json.loads(result.stdout)
    return reading


def read_here(path: Path, folder: Path, solver: str = SOLVER) -> Mapping[str, Any]:
    """Return what `hybrid score` reads back; `path` is a run, a file or the folder of an export."""
    # A folder of an export contains one file or folder that can be scored.
    while path.is_dir() and not (path / "manifest.json").exists() and len(list(path.iterdir())) == 1:
        (path,) = path.iterdir()
    if path.is_dir() and "shared" in path.parts:
        path = next(path.glob("*_samples.jsonl"))
    words = ("score", path) if (path / "manifest.json").exists() else ("score", path, "--benchmark", "blink")
    report = json.loads(hybrid(folder, *words, "--json"))
    # A file for one solver is that solver's report.
    result = report["solvers"][solver] if "solvers" in report else report
    return {"rows": result["n"], "score": result["metrics"]["accuracy_macro"]}


def write_export(form: str, file: str, run: Path, folder: Path, environments: Path) -> Path:
    """Export one solver of a run."""
    more = ("--only", "all") if form in WITH_TOOLS else ()
    allow = ("--allow", "generated") if form == "every_eval_ever" else ()
    python = python_of(form, environments) if form == "inspect" else Path(sys.executable)
    solver = run / WITH_TOOLS.get(form, SOLVER)
    hybrid(folder, "export", solver, "--to", form, "-o", file, *more, *allow, python=python)
    return folder / file


def measure(run: Path | None, environments: Path | None) -> list[Row]:
    """Export the run to each format and run each reader on it, formats in parallel."""
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(len(EXPORTS)) as pool:
        folder = Path(name)
        places = environments or folder / "environments"
        for environment in ENVIRONMENTS:
            python_of(environment, places)
        run = make_run(folder) if run is None else run.resolve()
        scores = {name: float(read_here(run, folder, name)["score"]) for name in (SOLVER, *WITH_TOOLS.values())}

        def rows_of(form: str, file: str, readers: Sequence[Reader]) -> list[Row]:
            path = write_export(form, file, run, folder, places)
            results = []
            for reader in readers:
                reading = read_here(path, folder) if reader is OURS else read_there(reader, path, places)
                facts = form, Path(file).suffix, reader.title, reader.function
                score = scores[WITH_TOOLS.get(form, SOLVER)]
                results.append(Row(*facts, reading["rows"], reading["score"], score))
                print(results[-1], file=sys.stderr, flush=True)
            return results

        return [row for rows in pool.map(rows_of, *zip(*EXPORTS, strict=True)) for row in rows]


def table(rows: Sequence[Row]) -> Table:
    """Return a row per reader: what it read, and the score that it computes or finds."""
    heads = ("format", "reader", "what is run"), ("rows", "score", "the run's")
    columns = (*(Column(head, "left") for head in heads[0]), *map(Column, heads[1]))
    cells = []
    for row in rows:
        score = "none" if row.score is None else f"{row.score:.3f}"
        form = row.form + (f" ({row.suffix})" if row.suffix else "")
        cells.append(
            (
                form,
                row.reader.strip("`"),
                row.function.replace("`", ""),
                str(row.rows),
                score,
                f"{row.score_of_run:.3f}",
            )
        )
    return Table("", columns, tuple(cells))


def page(text: str, rows: Sequence[Row]) -> str:
    """Return the page with the table of these rows."""
    previous, _, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise SystemExit(f"{PAGE.name} has no lines {BEGIN.strip()} and {END.strip()}")
    return previous + BEGIN + as_markdown(table(rows)) + end + after


def main() -> None:
    """Run the readers unless only the page is requested, and write the page."""
    flags = options(__doc__, {"--run": Path, "--cache": Path, "--page": False})
    if flags.page:
        rows = [Row(**row) for row in json.loads(RESULTS.read_text(encoding="utf-8"))]
    else:
        rows = measure(flags.run, flags.cache)
        RESULTS.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
