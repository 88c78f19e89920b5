"""Compare other programs' parsers of multiple-choice replies with this project's: docs/scorers.md.

    uv run python -m bench.scorers --data ../shared/data    # runs the readers, writes the results and the page
    uv run python -m bench.scorers --page                   # writes the page again from the committed results

We wrote the replies in scorers.tsv, each with its meaning. lmms-eval, VLMEvalKit and Inspect are installed as pinned
packages into temporary environments (this needs uv and a package index). With `--data`, which contains
`blink_outputs/MODEL`, the same readers read the saved full texts of four models on BLINK val. Not part of CI.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any, Final

from bench._frame import options
from hybrid.answers.letters import parse_letter
from hybrid.benchmarks.blink import analyze_answer
from hybrid.display.tables import Column, Table, as_markdown

HERE: Final = Path(__file__).parent
TABLE: Final = HERE / "scorers.tsv"
RESULTS: Final = HERE / "results" / "scorers.json"
PAGE: Final = HERE.parent / "docs" / "scorers.md"
TEXT: Final = HERE / "scorers.md"
MODELS: Final = ("GPT4o", "GPT4V", "llava-v1.6-34b", "QwenVLMax")
# The package of Inspect is imported, so its dependencies are installed. Of the other packages, only one function
# without dependencies is executed.
PACKAGES: Final[Mapping[str, Sequence[str]]] = {
    "lmms-eval": ("--no-deps", "lmms-eval==0.7.3"),
    "vlmevalkit": ("--no-deps", "ms-vlmeval==0.0.20"),
    "inspect": ("inspect-ai==0.3.285",),
}
READERS: Final = ("official", *PACKAGES, "ours")
# The wording of BLINK's options; those of Counting are not in the saved outputs.
TWO: Final = ("the second image", "the third image")
POINTS: Final = tuple(f"Point {letter}" for letter in "ABCD")
OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("Visual_Similarity", "Jigsaw", "Art_Style"), TWO),
    **dict.fromkeys(("Visual_Correspondence", "Semantic_Correspondence", "Functional_Correspondence"), POINTS),
    "Forensic_Detection": ("the first image", *TWO, "the fourth image"),
    "Relative_Depth": ("A is closer", "B is closer"),
    "Relative_Reflectance": ("A is darker", "B is darker", "About the same"),
    "Object_Localization": ("Box A", "Box B"),
    "Multi-view_Reasoning": ("left", "right"),
    "Spatial_Relation": ("yes", "no"),
    "IQ_Test": tuple(f"picture {letter}" for letter in "ABCD"),
    "Counting": ("",) * 4,
}
# Choices and a reply.
Asked = tuple[Sequence[str], str]
Letters = Sequence[str | None]


@dataclass(frozen=True)
class Row:
    """A reply in the table and the letter that it means, None if a person could not say which."""

    kind: str
    choices: tuple[str, ...]
    reply: str
    means: str | None


def rows() -> tuple[Row, ...]:
    """Return the table of replies."""
    lines = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:]]
    return tuple(
        Row(kind, tuple(json.loads(choices)), json.loads(reply), None if means == "-" else means)
        for kind, choices, reply, means in lines
    )


def read_here(name: str, questions: Sequence[Asked]) -> Letters:
    """Return the letters that the official rule, without its call to GPT-3.5, or our parser reads."""
    if name == "official":
        return [analyze_answer(reply, len(choices)) for choices, reply in questions]
    return [parse_letter(reply, choices).value for choices, reply in questions]


def read_there(name: str, folder: Path, questions: Sequence[Asked]) -> Letters:
    """Return the letters that a pinned package reads, in its own environment below `folder`."""
    python = folder / name / "bin" / "python"
    if not python.exists():
        subprocess.run(["uv", "venv", "--quiet", "--python", "3.11", folder / name], check=True)  # noqa: S603, S607
        install = ["uv", "pip", "install", "--quiet", "--python", python, *PACKAGES[name]]
        subprocess.run(install, check=True)  # noqa: S603
    command = [python, "-I", HERE / "_scorer_readers.py", name]
    result = subprocess.run(command, input=json.dumps(questions), capture_output=True, text=True, check=False)  # noqa: S603
    if result.returncode:
        raise SystemExit(f"the reader of {name} ({PACKAGES[name][-1]}) failed:\n{result.stderr[-2000:]}")
    names: list[str | None] = json.loads(result.stdout)
    return names


def saved(data: Path, model: str) -> tuple[list[Asked], list[tuple[str, str]]]:
    """Return a model's saved replies on BLINK val with their choices, and the task and right letter of each."""
    questions: list[Asked] = []
    keys: list[tuple[str, str]] = []
    for task, choices in OPTIONS.items():
        for row in json.loads((data / "blink_outputs" / model / f"{task}.json").read_text(encoding="utf-8"))["val"]:
            questions.append((choices, row["full_prediction"] or ""))
            keys.append((task, row["answer"].strip("()")))
    return questions, keys


def accuracy(letters: Letters, keys: Sequence[tuple[str, str]]) -> float:
    """Return the mean over tasks of the share of right letters, in percent; no letter counts as wrong."""
    right: dict[str, list[bool]] = {}
    for letter, (task, answer) in zip(letters, keys, strict=True):
        right.setdefault(task, []).append(letter == answer)
    return round(100 * mean(mean(hits) for hits in right.values()), 2)


def measure(data: Path | None, mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Run all readers on the table, and on the saved replies if `data` is given; else keep the stored results."""
    with tempfile.TemporaryDirectory() as folder:

        def read(name: str, questions: Sequence[Asked]) -> Letters:
            return read_there(name, Path(folder), questions) if name in PACKAGES else read_here(name, questions)

        pairs = [(row.choices, row.reply) for row in rows()]
        results: dict[str, Any] = {**mapping, "letters": {name: list(read(name, pairs)) for name in READERS}}
        if data is not None:
            results["blink"] = {model: _on_saved(data, model, read) for model in MODELS}
    return results


def _on_saved(data: Path, model: str, read: Callable[[str, Sequence[Asked]], Letters]) -> dict[str, Any]:
    request, keys = saved(data, model)
    letters = {name: read(name, request) for name in READERS}
    return {
        name: {"accuracy": accuracy(result, keys), "unread": sum(letter is None for letter in result)}
        for name, result in letters.items()
    }


def _summary(results: Mapping[str, Letters]) -> Table:
    """Count, for each reader, the replies read as meant, and its two kinds of errors."""
    table = rows()
    cells = []
    for name in READERS:
        pairs = list(zip(results[name], (row.means for row in table), strict=True))
        unread = sum(letter is None and means is not None for letter, means in pairs)
        invented = sum(letter is not None and means is None for letter, means in pairs)
        other = sum(None not in (letter, means) and letter != means for letter, means in pairs)
        right = len(pairs) - unread - invented - other
        cells.append((name, str(right), str(unread), str(other), str(invented)))
    heads = ("as meant", "clear but unread", "another letter", "a letter where none is meant")
    return Table("", (Column("reader", "left"), *map(Column, heads)), tuple(cells))


def _differences(results: Mapping[str, Letters]) -> Table:
    """Return the replies that at least one reader misreads; a cross marks wrong readings."""
    cells = []
    for place, row in enumerate(rows()):
        letters = [results[name][place] for name in READERS]
        if any(letter != row.means for letter in letters):
            marked = [(letter or "none") + ("" if letter == row.means else " ✗") for letter in letters]
            cells.append((row.reply.replace("\n", "⏎"), ", ".join(row.choices), row.means or "none", *marked))
    columns = (Column("reply", "left"), Column("options", "left"), *map(Column, ("means", *READERS)))
    return Table("", columns, tuple(cells))


def _published(blink: Mapping[str, Any]) -> Table:
    """Return, for each model, the accuracy by each reader, and the number of unread replies."""
    cells = tuple(
        (model, *(f"{of[name]['accuracy']:.2f} ({of[name]['unread']:,})" for name in READERS))
        for model, of in blink.items()
    )
    return Table("", (Column("model", "left"), *map(Column, READERS)), cells)


def page(results: Mapping[str, Any]) -> str:
    """Return the page: the text of scorers.md with its three tables."""
    tables = {
        "summary": as_markdown(_summary(results["letters"])),
        "published": as_markdown(_published(results["blink"])),
        "differences": as_markdown(_differences(results["letters"])),
    }
    text = TEXT.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = text.replace(f"<!-- table: {name} -->\n", table)
    return text


def main() -> None:
    """Run the readers unless only the page is requested, and write the page."""
    flags = options(__doc__, {"--data": Path, "--page": False})
    data = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    measurement = data if flags.page else measure(flags.data, data)
    if "blink" not in measurement:
        raise SystemExit("no results on BLINK's saved replies yet: give --data, a folder that holds blink_outputs/")
    RESULTS.write_text(json.dumps(measurement, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(measurement), encoding="utf-8")


if __name__ == "__main__":
    main()
