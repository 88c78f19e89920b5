"""The role of each solver in a comparison, and which solvers belong together.

    for group in comparison_groups(solvers):
        group.hybrid, group.alone, group.specialist, group.blank

A hybrid solver is compared with its parts: the same MLLM alone, the specialists alone, and itself with blank tools.
Solvers belong together if their benchmark and MLLM are the same. Predictions and imported runs count as an MLLM alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from hybrid.core.errors import UsageError
from hybrid.core.repetitions import number_of, word_of
from hybrid.plugins.registry import load, load_solver, package_of_solver
from hybrid.scoring.score import Scored
from hybrid.solving.solver import Role
from hybrid.solving.styles import PLAIN

REAL = "real"
# Name of the MLLM alone; its other forms (captions, text only) belong to no group.
ALONE = "mllm"
SPECIALIST = "specialist"
RESULT_ONLY = "result_only"
# The setting under which tool output is shown as text and pictures.
BOTH = "both"


def word(scored: Scored) -> str:
    """Return a solver's name on the command line: `mllm` for its repetition `mllm@2`."""
    return word_of(scored.recorded)


def repetition(scored: Scored) -> int:
    """Return the number of a solver's repetition, from 1."""
    return number_of(scored.recorded)


def repeated_as(scored: Scored) -> tuple[Path | None, str, str | None, bool]:
    """Return a key that is equal for all repetitions of a solver, but not for its judged variant.

    The name in a comparison is no part of it: a suffix that tells namesakes apart may differ between repetitions.
    """
    folder = scored.source.parent if scored.source else scored.folder.path if scored.folder else None
    if scored.folder and (model := scored.identity.get("imported", {}).get("model")):
        # Each import has a folder of its own; imports of one model beside each other are as the files that they were
        # read from. Without a model, files of one name may be of different models.
        return scored.folder.path.parent, word(scored), model, scored.read_by_judge
    return (folder, word(scored), named_model(scored), scored.read_by_judge)


def named_model(scored: Scored) -> str | None:
    """Return the model that predictions name: logs of one folder may be of several models.

    None for runs, which have one model, and for predictions whose model is only known by the name of their file: it is
    another one for each repetition.
    """
    return None if scored.folder is not None or scored.model == scored.recorded else scored.model


def role(scored: Scored) -> Role:
    """Return the role of a solver in a comparison; answers of other programs count as an MLLM alone."""
    if is_imported(scored):
        return "mllm"
    recorded = scored.manifest["solvers"].get(scored.recorded, {}).get("role")
    if recorded in get_args(Role):
        return cast(Role, recorded)
    name = word(scored)
    try:
        package = package_of_solver(name)
    except UsageError:
        return "mllm"
    solver_role: Role = load(package, name).role
    return solver_role


def offers_tools(scored: Scored) -> bool:
    """Return whether a solver is known to offer its MLLM tools; a rule that combines two answers offers none."""
    try:
        return not is_imported(scored) and load_solver(word(scored)).offers_tools
    except UsageError:
        return False


def is_imported(scored: Scored) -> bool:
    """Return whether another program recorded the answers."""
    return scored.folder is None or "imported" in scored.identity


def is_read_hybrid(scored: Scored) -> bool:
    """Return whether these are answers of one of our solvers with tools, read from a file without their calls."""
    try:
        return is_imported(scored) and load_solver(word(scored)).role == "hybrid"
    except UsageError:
        return False


def model_of(scored: Scored) -> str | None:
    """Return the MLLM that gave, or contributed to, a solver's answers; None for specialists alone and chance."""
    return scored.model if role(scored) in ("hybrid", "mllm") else None


def origin_of(scored: Scored) -> dict[str, str | None]:
    """Return `model` and `run` of a solver; each is None if it is missing."""
    return {"model": model_of(scored), "run": None if scored.folder is None else scored.folder.path.as_posix()}


# Shown in place of a command if the run was started from Python or a script.
AGAIN = "ask again as before"


def own_command(solvers: Sequence[Scored]) -> str:
    """Return the shell command that resumes the first of these solvers' runs with a recorded command, else `AGAIN`."""
    command_lists = (solver.manifest.get("commands", ()) for solver in solvers if solver.folder is not None)
    last = (commands[-1]["command"] for commands in command_lists if commands)
    return next((command for command in last if command.startswith("hybrid ")), AGAIN)


def alone_not_begun(scored: Scored) -> bool:
    """Return whether a solver's run includes the MLLM alone but has no attempts of it yet."""
    if scored.folder is None or is_imported(scored):
        return False
    asked_for = {word_of(name) for name in scored.manifest["solvers"]}
    return ALONE in asked_for and ALONE not in map(word_of, scored.folder.solvers())


def command_for_unchosen(hybrids: Sequence[Scored], name: str, compared: Sequence[Scored]) -> str:
    """Return the shell command that compares the full runs of `compared`, if a run of `hybrids` has solver `name`.

    The result is empty if no run has this solver. If some of `compared` are predictions from a file, which the command
    would leave out, the result is instead the path of the run to add.
    """
    own_runs = [solver.folder for solver in hybrids if solver.folder is not None and not is_imported(solver)]
    having = next((folder for folder in own_runs if name in folder.solvers()), None)
    if having is None:
        return ""
    if any(solver.folder is None for solver in compared):
        return f"add {shlex.quote((having.path / name).as_posix())} to the comparison"
    paths = (solver.folder.path.as_posix() for solver in compared if solver.folder is not None)
    return shlex.join(("hybrid", "compare", *dict.fromkeys(paths)))


def control(scored: Scored) -> str | None:
    """Return the control that produced a solver's tool output (`blank`, `shuffled`, `oracle`); None for real tools."""
    return None if scored.tool_output == REAL else scored.tool_output


@dataclass(frozen=True)
class ComparisonGroup:
    """A hybrid solver with real tools, with its parts and controls; None for each that is missing."""

    hybrid: Scored
    # The hybrid solver's MLLM without tools.
    alone: Scored | None = None
    # The specialists without an MLLM.
    specialist: Scored | None = None
    # The hybrid solver with blank tools of the same names.
    blank: Scored | None = None
    # The hybrid solver with tool output about other questions.
    shuffled: Scored | None = None
    # The hybrid solver with the output of a perfect tool.
    oracle: Scored | None = None
    # The hybrid solver with tool output in the tools' second wording.
    paraphrased: Scored | None = None
    # The MLLM with the specialist's output in its prompt, in one call.
    result_only: Scored | None = None
    # The hybrid solver shown only the text of tool output.
    as_text: Scored | None = None
    # The hybrid solver shown only the pictures of tool output.
    as_pictures: Scored | None = None
    # The hybrid solver whose model gets its tools in the format in which it was trained.
    as_trained: Scored | None = None
    # The hybrid solver in whose dialogue only a tool's latest picture is kept.
    latest_picture: Scored | None = None

    @property
    def parts(self) -> tuple[Scored, ...]:
        """The MLLM alone and the specialists alone, if present."""
        return tuple(solver for solver in (self.alone, self.specialist) if solver is not None)


def comparison_groups(solvers: Sequence[Scored]) -> tuple[ComparisonGroup, ...]:
    """Return a group for each hybrid solver with real tools, in the order given.

    Solvers of the same run are preferred; the first repetition stands for all repetitions.
    """
    hybrids = [
        solver for solver in solvers if role(solver) == "hybrid" and control(solver) is None and repetition(solver) == 1
    ]
    hybrids = [solver for solver in hybrids if form_of(solver) in (None, BOTH)]
    plain = {(solver.model, word(solver)) for solver in hybrids if asked_in(solver) == USUAL}
    # A solver with another tool style or fewer pictures is a setting in the study of the plain solver; a judged variant
    # belongs to a solver that is present.
    heads = [solver for solver in hybrids if asked_in(solver) == USUAL or (solver.model, word(solver)) not in plain]
    heads = [head for head in heads if not head.read_by_judge]
    # If a solver with a loop is present, `result_only` is a setting in that solver's study, not a contestant.
    heads = [head for head in heads if word(head) != RESULT_ONLY] or heads
    return tuple(_group_of(head, solvers) for head in heads)


def form_of(scored: Scored) -> str | None:
    """Return the form in which a model is shown tool output (`text`, `image`, `both`); None if not recorded."""
    form = scored.identity.get("show")
    return form if isinstance(form, str) else None


USUAL = ("", "")


def asked_in(scored: Scored) -> tuple[str, str]:
    """Return the tool style and the pictures kept (`--keep-pictures`); each is empty if it is the default."""
    model = scored.identity.get("model")
    pictures = str(model.get("keep_pictures", "")) if isinstance(model, Mapping) else ""
    style = str((scored.identity.get("tool_style") or {}).get("name", PLAIN.name))
    return "" if style == PLAIN.name else style, pictures


def _group_of(head: Scored, solvers: Sequence[Scored]) -> ComparisonGroup:
    head_setting = style, pictures = asked_in(head)

    def first(
        kind: Role,
        name: str,
        output: str = REAL,
        *,
        form: str | None = form_of(head),
        matches: Callable[[tuple[str, str]], bool] = head_setting.__eq__,
    ) -> Scored | None:
        fitting = [
            solver for solver in solvers if (role(solver), word(solver), solver.tool_output) == (kind, name, output)
        ]
        fitting = [solver for solver in fitting if repetition(solver) == 1]
        if kind != "specialist":
            fitting = [solver for solver in fitting if solver.model == head.model]
        if kind == "hybrid":
            fitting = [solver for solver in fitting if form_of(solver) == form and matches(asked_in(solver))]
            tools = head.identity.get("tools_offered")
            fitting = [solver for solver in fitting if solver.identity.get("tools_offered") == tools]
        return min(fitting, key=lambda solver: solver.folder is not head.folder, default=None)

    # Tool output never reaches the MLLM alone, so its answers in a run with a control are equally valid.
    outputs = dict.fromkeys((REAL, *(solver.tool_output for solver in solvers)))
    alone = next((solver for output in outputs if (solver := first("mllm", ALONE, output))), None)
    return ComparisonGroup(
        head,
        alone=alone,
        specialist=first("specialist", SPECIALIST),
        blank=first("hybrid", word(head), "blank"),
        shuffled=first("hybrid", word(head), "shuffled"),
        oracle=first("hybrid", word(head), "oracle"),
        paraphrased=first("hybrid", word(head), "paraphrased"),
        result_only=first("hybrid", RESULT_ONLY) if word(head) != RESULT_ONLY else None,
        as_text=first("hybrid", word(head), form="text"),
        as_pictures=first("hybrid", word(head), form="image"),
        as_trained=first(
            "hybrid", word(head), matches=lambda setting: setting[0] not in ("", style) and setting[1] == pictures
        ),
        latest_picture=first(
            "hybrid", word(head), matches=lambda setting: setting == (style, "latest") != (style, pictures)
        ),
    )
