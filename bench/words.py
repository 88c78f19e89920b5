"""Count odd names in the code: odd words, participles as function names, class names that are defined twice.

    python -m bench.words                    # every package, and the sums of product, bench and tests
    python -m bench.words hybrid/cli tools --list

A name is odd if it does not say what the value is (`found`, `told`, `one`).
Names count where they are bound: assignments, loops and parameters. `--list` prints each place. No test depends on
these numbers.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
if not __package__:  # If run as a file, the root of the clone is not on the path, and bench/tools.py would hide `tools`
    sys.path[0] = str(ROOT)

from bench._frame import options
from bench.size import FOLDERS, SUMS, room_of
from hybrid.display.tables import Column, Table, as_text

LISTS: Mapping[str, list[str]] = tomllib.loads(Path(__file__).with_name("words.toml").read_text())
ODD = frozenset(LISTS["odd"])
PARTICIPLES = frozenset(LISTS["participles"])


@dataclass
class Words:
    """Counts of one package: non-blank lines, functions, and places (path:line name) of each fault."""

    lines: int = 0
    functions: int = 0
    odd: list[str] = field(default_factory=list)
    participles: list[str] = field(default_factory=list)

    def add(self, other: Words) -> None:
        """Add the faults of another package."""
        self.lines += other.lines
        self.functions += other.functions
        self.odd += other.odd
        self.participles += other.participles

    @property
    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        return (
            f"{self.lines:,}",
            f"{1000 * len(self.odd) / self.lines:.1f}" if self.lines else "",
            f"{self.functions:,}",
            f"{100 * len(self.participles) / self.functions:.1f} %" if self.functions else "",
        )


def words_of(source: str, path: str) -> Words:
    """Count the faults in one file's text; `path` is the prefix of each place."""
    words = Words(lines=sum(bool(line.strip()) for line in source.splitlines()))
    for node in ast.walk(ast.parse(source)):
        for name, line in _bindings(node):
            if name in ODD:
                words.odd.append(f"{path}:{line} {name}")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            words.functions += 1
            if node.name.strip("_") in PARTICIPLES:
                words.participles.append(f"{path}:{node.lineno} {node.name}()")
    return words


def _bindings(node: ast.AST) -> Iterator[tuple[str, int]]:
    match node:
        case ast.Name(ctx=ast.Store()):
            yield node.id, node.lineno
        case ast.arg():
            yield node.arg, node.lineno


def repeated_classes(paths: Iterable[Path], root: Path = ROOT) -> dict[str, list[str]]:
    """Return public class names that more than one file defines, with the files."""
    files: dict[str, list[str]] = {}
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                files.setdefault(node.name, []).append(str(path.relative_to(root)))
    return {name: sorted(set(places)) for name, places in sorted(files.items()) if len(set(places)) > 1}


def by_package(paths: Iterable[Path], root: Path = ROOT) -> dict[str, Words]:
    """Return the counts of each package that contains one of these files."""
    packages: dict[str, Words] = {}
    for path in paths:
        relative = path.relative_to(root)
        packages.setdefault(room_of(relative), Words()).add(words_of(path.read_text(encoding="utf-8"), str(relative)))
    return packages


def table(packages: dict[str, Words]) -> Table:
    """Return a row for each package, and one for each sum."""
    rows = [(name, *words.cells) for name, words in sorted(packages.items())]
    for name, folders in SUMS.items():
        total = Words()
        for package, words in packages.items():
            if package.split("/")[0] in folders:
                total.add(words)
        rows.append((name, *total.cells))
    columns = ("lines", "odd names per 1,000", "functions", "named by a participle")
    return Table("Words", (Column("package"), *map(Column, columns)), tuple(rows))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, the class names that are defined twice in the product, and every place with `--list`."""
    flags = options(__doc__, {"paths...": Path, "--list": False}, arguments)
    tops = [path.resolve() for path in flags.paths] or [ROOT / name for name in FOLDERS]
    paths = [path for top in tops for path in ([top] if top.is_file() else sorted(top.rglob("*.py")))]
    packages = by_package(paths)
    if flags.list:
        print("\n".join(place for words in packages.values() for place in (*words.odd, *words.participles)))
    print(as_text(table(packages)))
    product = [path for path in paths if path.relative_to(ROOT).parts[0] in SUMS["hybrid + tools + graphs + baselines"]]
    repeated = repeated_classes(product)
    print(f"\nPublic class names of the product that are defined twice: {len(repeated)}")
    print("\n".join(f"  {name}: {', '.join(files)}" for name, files in repeated.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
