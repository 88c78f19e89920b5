"""The first line of a comparison: models, benchmark, number of questions, and dates.

head_of(solvers)       # ("openai:gpt-4o", "BLINK val", "105 questions", "2026-11-28")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from hybrid.benchmarks.card import BenchmarkCard
from hybrid.log.folder import RunFolder
from hybrid.plugins.registry import load
from hybrid.scoring.groups import model_of
from hybrid.scoring.score import Scored

# Replaces the split, because numbers on generated questions are not benchmark results.
GENERATED: Final = "generated questions"
# Name of the only split of a data set, which adds nothing to the benchmark's name.
WHOLE: Final = "all"
# Longer lists of models are cut.
SHOWN_MODELS: Final = 3
_CAPTION: Final = re.compile(r"^(\\caption\{.*)\}$", re.MULTILINE)


def head_of(solvers: Sequence[Scored]) -> tuple[str, ...]:
    """Return the models, the benchmark with its split (or `GENERATED`), the number of questions, and the run dates.

    If the solvers have different questions, the number of questions that all of them have follows. There is at least
    one solver; all are of one benchmark.
    """
    models = list(dict.fromkeys(filter(None, map(model_of, solvers))))
    id_sets = [{score.id for score in solver.scores} for solver in solvers]
    questions = _count(len(set.union(*id_sets)), len(set.intersection(*id_sets)))
    folders = {solver.folder.path: solver.folder for solver in solvers if solver.folder is not None}
    splits = {GENERATED if solver.data.generated else solver.data.split for solver in solvers}
    return _parts(models, solvers[0].benchmark, splits, questions, [*folders.values()])


def head_of_run(folder: RunFolder, questions: int) -> tuple[str, ...]:
    """Return the same parts from the manifest of a run, without scoring its answers."""
    identity = folder.manifest["identity"]
    model = identity.get("model")
    generated = (identity.get("data") or {}).get("kind") == "sample"
    split = GENERATED if generated else str(identity["split"])
    models = [str(model["model"])] if model else []
    return _parts(models, identity["benchmark"], {split}, _count(questions, questions), [folder])


def flag_captions(latex: str, solvers: Sequence[Scored]) -> str:
    """Add `GENERATED` to the captions of LaTeX tables if questions were generated: a compiled page has no head."""
    if not any(solver.data.generated for solver in solvers):
        return latex
    return _CAPTION.sub(lambda match: f"{match[1]} ({GENERATED})}}", latex)


def _parts(
    models: Sequence[str], benchmark: str, splits: set[str], count: str, folders: Sequence[RunFolder]
) -> tuple[str, ...]:
    more = [f"and {len(models) - SHOWN_MODELS} more models"] if len(models) > SHOWN_MODELS else []
    card: BenchmarkCard = load("hybrid.benchmarks", benchmark).card
    split_names = ", ".join(sorted(splits - {GENERATED, WHOLE}))
    # If there is a split, only part of the questions were generated.
    generated = f"and {GENERATED}" if splits - {GENERATED} else GENERATED
    return (
        ", ".join([*models[:SHOWN_MODELS], *more]) or "no model",
        f"{card.short_title} {split_names}".rstrip(),
        *([generated] if GENERATED in splits else []),
        count,
        _days(folders) or "date not recorded",
    )


def _count(questions: int, shared: int) -> str:
    text = f"{questions:,} question{'s' * (questions != 1)}"
    return text if shared == questions else f"{text}, {shared:,} of them put to every solver"


def _days(folders: Sequence[RunFolder]) -> str:
    """Return the dates of the runs' last commands, in UTC: `2026-11-27 to 2026-11-28`; empty without a run."""
    days = set()
    for folder in folders:
        commands = folder.manifest.get("commands", ())
        if commands:
            days.add(datetime.fromisoformat(commands[-1]["at"]).date().isoformat())
    return " to ".join(dict.fromkeys([min(days), max(days)])) if days else ""
