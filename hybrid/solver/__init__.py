"""The public names for a solver outside of the project: its protocol, its input and its output.

    from hybrid.solver import Prompt, Reply, Solver, SolverContext

`docs/add-a-graph.md` and `docs/add-a-baseline.md` show solvers that import nothing else.
"""

from hybrid.core.errors import ToolError
from hybrid.core.types import LETTERS, Finding, ImageRef, Json, Outcome, Prompt, Reply
from hybrid.solving.empty_replies import EMPTY, words_of
from hybrid.solving.evidence import finding_parts
from hybrid.solving.solver import Solver, SolverContext

__all__ = [
    "EMPTY",
    "LETTERS",
    "Finding",
    "ImageRef",
    "Json",
    "Outcome",
    "Prompt",
    "Reply",
    "Solver",
    "SolverContext",
    "ToolError",
    "finding_parts",
    "words_of",
]
