"""Read the second fixed wording of a tool's texts: a `Tool` gets it as `wording=wording_of(__file__)`.

A line of `wording.tsv` in the tool's folder, or of `NAME.wording.tsv` beside its file, is a phrase and its replacement.
The lines of `_shared/wording.tsv` apply to every tool, after its own. `hybrid/solving/paraphrase.py` makes the
replacements.
"""

from __future__ import annotations

from pathlib import Path


def wording_of(module: str) -> tuple[tuple[str, str], ...]:
    """Return pairs of a phrase and its replacement for the tool whose module is the file `module`."""
    path = Path(module)
    table = path.with_name("wording.tsv") if path.name == "__init__.py" else path.with_suffix(".wording.tsv")
    return (*_pairs(table), *_pairs(Path(__file__).with_suffix(".tsv")))


def _pairs(path: Path) -> list[tuple[str, str]]:
    lines = path.read_text("utf-8").splitlines()
    return [(phrase, other) for phrase, _, other in (line.partition("\t") for line in lines)]
