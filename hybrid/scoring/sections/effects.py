"""What is the effect of tool output without a loop, and of the loop and the form of the output?

result effect + loop effect is the gain on the questions that all three have. p tests the difference in the row. p
(Holm) is adjusted over all effects of its table.

n: questions that both cells have and neither failed on
source: arXiv 2606.02357; docs/study.md; paired by question, resampled by cluster
values: -1 to 1

- result effect = result only - alone. The effect of the specialist's output in the prompt, in one call.
- loop effect = hybrid - result only. The additional effect of choosing and calling tools.
- oracle = hybrid with oracle output - hybrid. The effect that perfect tool output would have. [source: ours]
- other words = hybrid with paraphrased output - hybrid. The same numbers and names in the tools' second wording: a
  difference comes from the wording. [source: ours]
- text alone = hybrid shown text alone - hybrid. The effect of the form of tool output (arXiv 2604.12896). [source:
  docs/study.md]
- pictures alone = hybrid shown pictures alone - hybrid. The effect of the form of tool output, on the questions where
  each output of the hybrid's tools has a picture; elsewhere, output would be withheld instead of shown in another form.
  [source: docs/study.md]
- as trained = hybrid in the form of its training - hybrid. The effect of the form in which tools are offered. [source:
  docs/study.md]
- latest picture alone = hybrid with only the latest picture - hybrid. The effect of leaving out older pictures of
  tools. [source: docs/study.md]

The cells follow "Do Multimodal Agents Really Benefit from Tool Use?" (arXiv 2606.02357): result only puts the tool
output in the prompt, without a loop. The effect of the format alone (tools offered, blank output) is `presence` of
section `gain`. The forms follow "Perception Programs" (arXiv 2604.12896); they are not tested if the tools made no
picture. Every row covers the questions that both cells have; `pictures alone` only those of its definition.
"""

from __future__ import annotations

from hybrid.scoring.attempt_facts import lacks_pictures, questions_with_pictures
from hybrid.scoring.compare import Comparison
from hybrid.scoring.conclusion_rows import ConclusionRows
from hybrid.scoring.definitions import statistic
from hybrid.scoring.families import EFFECTS, family_of_tasks
from hybrid.scoring.groups import ComparisonGroup
from hybrid.scoring.headline_pair import with_claim
from hybrid.scoring.parts import contrasts
from hybrid.scoring.result import Result, adjusted
from hybrid.scoring.score import Scored

NAME = "effects"
RESULT, LOOP, ORACLE, WORDS = "result effect", "loop effect", "oracle", "other words"
TEXT, PICTURES = FORMS = "text alone", "pictures alone"
ON_PICTURES = "on the questions where each tool output has a picture"
TRAINED, LATEST = ASKED = "as trained", "latest picture alone"


def cells(group: ComparisonGroup) -> tuple[tuple[str, Scored | None, Scored | None], ...]:
    """Return each quantity with the two cells whose difference it is; a cell that was not run is None."""
    return (
        (RESULT, group.alone, group.result_only),
        (LOOP, group.result_only, group.hybrid),
        (ORACLE, group.hybrid, group.oracle),
        (WORDS, group.hybrid, group.paraphrased),
        (TEXT, group.hybrid, group.as_text),
        (PICTURES, group.hybrid, group.as_pictures),
        (TRAINED, group.hybrid, group.as_trained),
        (LATEST, group.hybrid, group.latest_picture),
    )


def tested_cells(group: ComparisonGroup) -> list[tuple[str, Scored, Scored]]:
    """Return the cells that were run, without the forms of tool output if no tool made a picture."""
    run = [(quantity, a, b) for quantity, a, b in cells(group) if a is not None and b is not None]
    of_pictures = {TEXT, PICTURES, LATEST} & {quantity for quantity, _, _ in run}
    folder = group.hybrid.folder
    if of_pictures and folder is not None and lacks_pictures(folder, group.hybrid.recorded):
        return [cell for cell in run if cell[0] not in of_pictures]
    return run


def rows(comparison: Comparison) -> list[Result]:
    """Return each effect whose two cells were both run, for every hybrid solver: over all tasks and by task."""
    rows_of_pairs = ConclusionRows(comparison, ("differences", "helped", "answered"))
    section_rows = [
        (row if row.group else with_claim(row, rows_of_pairs.tested_pair(a, b)))
        if only is None
        else row.noted(f"{quantity}: {ON_PICTURES}")
        for group in comparison.groups
        for quantity, a, b in tested_cells(group)
        for only in (_questions_of(comparison, group, quantity),)
        for row in contrasts(comparison, NAME, (a, b), {quantity: (0, 1)}, only)
    ]
    return adjusted(section_rows, lambda row: family_of_tasks(row) if row.group else EFFECTS)


def _questions_of(comparison: Comparison, group: ComparisonGroup, quantity: str) -> frozenset[str] | None:
    """Return the ids of the questions that a quantity covers; None for all."""
    if quantity != PICTURES:
        return None
    repetitions = comparison.repetitions(group.hybrid)
    shown = [questions_with_pictures(item.folder, item.recorded) for item in repetitions if item.folder is not None]
    asked = {score.id for item in repetitions for score in item.scores if not score.outcome.failed}
    return None if not shown or asked <= (of_all := frozenset.intersection(*shown)) else of_all


SECTION = statistic(rows, chart="intervals", order=125)
