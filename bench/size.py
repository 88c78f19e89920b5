"""The size of each package: code lines, functions and their mean length, private share, comments, dataclasses.

    python -m bench.size                     # every package, and the sums of product, bench and tests
    python -m bench.size hybrid/cli tools/ocr.py --by-file

A line is code if it has a token other than a comment and belongs neither to an import nor to the docstring of a module,
class or function. A function's length is that of its body, without signature and docstring, but with nested
definitions. `private` is the share of functions with a leading underscore, without special methods such as `__init__`.
`data` counts the lines of TOML, CSV, TSV, YAML and JSON lines files, and `web` those of JavaScript, CSS and HTML, both
without blank lines, so that code that moves into either is still counted. No test depends on these numbers.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# If this runs as a file, the clone's root is not on the path, and bench/tools.py would hide `tools`
if not __package__:
    sys.path[0] = str(ROOT)

from bench._frame import options
from hybrid.display.tables import Column, Table, as_text

FOLDERS = ("hybrid", "tools", "graphs", "baselines", "training", "bench", "tests")
# Sums below the table, with the folders that each covers.
SUMS: Mapping[str, tuple[str, ...]] = {
    "hybrid + tools + graphs + baselines": ("hybrid", "tools", "graphs", "baselines"),
    "all": FOLDERS,
}
DATA = frozenset((".toml", ".csv", ".tsv", ".yaml", ".jsonl"))
WEB = frozenset((".js", ".css", ".html"))
NO_CODE = (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True)
class Size:
    """Counts of one file, or the sum over several."""

    code: int = 0
    functions: int = 0
    # Lines of function bodies; the lines of a nested function count for both functions.
    of_bodies: int = 0
    private: int = 0
    comments: int = 0
    dataclasses: int = 0
    # Lines that are not blank, in files that are not Python.
    data: int = 0
    web: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*(item + two for item, two in zip(astuple(self), astuple(other), strict=True)))

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the row of a table: counts, and shares if their denominator is not 0."""
        per_1000, functions = self.code / 1000, self.functions
        return (
            f"{self.code:,}",
            f"{functions:,}",
            f"{functions / per_1000:.0f}" if self.code else "",
            f"{self.of_bodies / functions:.1f}" if functions else "",
            f"{100 * self.private / functions:.0f} %" if functions else "",
            f"{self.comments / per_1000:.0f}" if self.code else "",
            f"{self.dataclasses / per_1000:.1f}" if self.code else "",
            f"{self.data:,}",
            f"{self.web:,}",
        )


def size_of(source: str) -> Size:
    """Return the counts of lines, functions and dataclasses in one Python source."""
    tree = ast.parse(source)
    code: set[int] = set()
    comments: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NO_CODE:
            lines = comments if token.type == tokenize.COMMENT else code
            lines.update(range(token.start[0], token.end[0] + 1))
    functions: list[ast.FunctionDef | ast.AsyncFunctionDef] = []
    dataclasses = 0
    for node in ast.walk(tree):
        match node:
            case ast.Import() | ast.ImportFrom():
                code.difference_update(_lines(node))
                comments.difference_update(_lines(node))
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions.append(node)
            case ast.ClassDef():
                dataclasses += any("dataclass" in ast.unparse(item) for item in node.decorator_list)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(ast.Constant(str())) as docstring, *_]:
                    code.difference_update(_lines(docstring))
    private = sum(function.name.startswith("_") and not function.name.startswith("__") for function in functions)
    bodies = sum(map(_body, functions))
    return Size(len(code), len(functions), bodies, private, len(comments - code), dataclasses)


def _lines(node: ast.stmt) -> range:
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)


def _body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def room_of(path: Path) -> str:
    """Return the package of a file by its path in the checkout: a folder of hybrid, or a top-level folder."""
    parts = path.parts
    return "/".join(parts[:2]) if parts[0] == "hybrid" and len(parts) > 2 else parts[0]


def sizes(paths: Iterable[Path], *, by_file: bool = False, root: Path = ROOT) -> dict[str, Size]:
    """Return the size of each package, or of each file, below these files and folders."""
    results: dict[str, Size] = {}
    for path in (item for top in paths for item in ([top] if top.is_file() else sorted(top.rglob("*")))):
        place = path.relative_to(root)
        name = str(place) if by_file else room_of(place)
        if counts := _count(path):
            results[name] = results.get(name, Size()) + counts
    return results


def of_checkout(root: Path = ROOT) -> dict[str, Size]:
    """Return the size of every package."""
    return sizes((root / name for name in FOLDERS), root=root)


def _count(path: Path) -> Size | None:
    """Count a file of code, data or web pages; return None for any other file."""
    if path.suffix == ".py":
        return size_of(path.read_text(encoding="utf-8"))
    if path.suffix not in DATA | WEB or not path.is_file():
        return None
    lines = sum(bool(line.strip()) for line in path.read_text(encoding="utf-8").splitlines())
    return Size(data=lines) if path.suffix in DATA else Size(web=lines)


def table(results: Mapping[str, Size]) -> Table:
    """Return a row for each package, and one for each sum."""
    columns = (
        "code",
        "functions",
        "per 1,000",
        "mean length",
        "private",
        "comments per 1,000",
        "dataclasses per 1,000",
        "data",
        "web",
    )
    rows = [(name, *size.cells) for name, size in sorted(results.items())]
    for name, folders in SUMS.items():
        parts = [size for room, size in results.items() if room.split("/")[0] in folders]
        if len(parts) > 1:
            rows.append((name, *sum(parts, Size()).cells))
    return Table("Size", (Column("room"), *map(Column, columns)), tuple(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table."""
    flags = options(__doc__, {"paths...": Path, "--by-file": False}, arguments)
    paths = [path.resolve() for path in flags.paths] or [ROOT / name for name in FOLDERS]
    print(as_text(table(sizes(paths, by_file=flags.by_file))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
