"""The questions on which a solver called a tool that answered.

called = call_share(comparison, hybrid, part.seen.ids)      # 0..1 for each question; nan without a trace
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from hybrid.scoring.compare import Comparison
from hybrid.scoring.findings import outputs_by_question
from hybrid.scoring.score import Scored
from hybrid.scoring.table import Floats


def call_share(comparison: Comparison, hybrid: Scored, ids: Iterable[str], *, repeated: bool = True) -> Floats:
    """Return for each question the share of repetitions in which a tool answered a call; failed calls do not count.

    Without `repeated` only the first repetition is read. nan if no repetition has a readable trace.
    """
    repetitions = comparison.repetitions(hybrid) if repeated else (hybrid,)
    verdicts = [outputs_by_question(scored) for scored in repetitions]

    def share(identity: str) -> float:
        traced = [of[identity] for of in verdicts if identity in of and not of[identity].no_trace]
        return sum(bool(verdict.tools) for verdict in traced) / len(traced) if traced else np.nan

    return np.array([share(identity) for identity in ids], float)
