"""The role of each solver in a comparison, and which of them belong together.

    for group in comparison_groups(solvers):
        group.hybrid, group.alone, group.specialist, group.blank

A hybrid solver is read next to its parts: the same MLLM alone, the specialists alone, and itself with blank tools. They
belong together where benchmark and MLLM are the same. Predictions and imported runs are an MLLM alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from hybrid.errors import UsageError
from hybrid.registry import load, load_solver, package_of_solver
from hybrid.repeats import number_of, word_of
from hybrid.scoring.score import Scored
from hybrid.solving.solver import Role
from hybrid.solving.styles import PLAIN

REAL = "real"
# The word of the MLLM alone; its other forms (captions, text only) belong to no group.
ALONE = "mllm"
SPECIALIST = "specialist"
RESULT_ONLY = "result_only"
# The form of findings with text and pictures.
BOTH = "both"


def word(scored: Scored) -> str:
    """The word on the command line that a solver was asked by: `mllm` for its repetition `mllm@2`."""
    return word_of(scored.recorded)


def repetition(scored: Scored) -> int:
    """The number of a solver's repetition, from 1."""
    return number_of(scored.recorded)


def repeated_as(scored: Scored) -> tuple[Path | None, str, str]:
    """A key that all repetitions of a solver share, and its readings by a judge do not."""
    return (scored.folder.path if scored.folder else None, word(scored), scored.solver.removeprefix(scored.recorded))


def role(scored: Scored) -> Role:
    """The role of a solver in a comparison; answers that other programs recorded count as an MLLM alone."""
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
    found: Role = load(package, name).role
    return found


def offers_tools(scored: Scored) -> bool:
    """Whether a solver is known to offer its MLLM tools; one that joins two answers by a rule offers none."""
    try:
        return not is_imported(scored) and load_solver(word(scored)).offers_tools
    except UsageError:
        return False


def is_imported(scored: Scored) -> bool:
    """Whether the answers were recorded by another program."""
    return scored.folder is None or "imported" in scored.identity


def model_of(scored: Scored) -> str | None:
    """The MLLM that gave a solver's answers, or had a part in them; None for specialists alone and for chance."""
    return scored.model if role(scored) in ("hybrid", "mllm") else None


def origin_of(scored: Scored) -> dict[str, str | None]:
    """`model` and `run` of a solver; None for one that has none."""
    return {"model": model_of(scored), "run": None if scored.folder is None else scored.folder.path.as_posix()}


# Said where a run was made by no command: by a call from Python, or by a script.
AGAIN = "ask again as before"


def own_command(solvers: Sequence[Scored]) -> str:
    """The command that goes on with the run of the first of these that has one, for a shell; else `AGAIN`."""
    given = (one.manifest.get("commands", ()) for one in solvers if one.folder is not None)
    last = (commands[-1]["command"] for commands in given if commands)
    return next((command for command in last if command.startswith("hybrid ")), AGAIN)


def control(scored: Scored) -> str | None:
    """The control by which a solver's tools answered (`blank`, `shuffled`, `oracle`); None for real tools."""
    return None if scored.tool_output == REAL else scored.tool_output


@dataclass(frozen=True)
class ComparisonGroup:
    """A hybrid solver with real tools, next to its parts and controls; None for one that is not there."""

    hybrid: Scored
    # Its MLLM without tools.
    alone: Scored | None = None
    # The specialists without an MLLM.
    specialist: Scored | None = None
    # The hybrid solver with blank tools of the same names.
    blank: Scored | None = None
    # The hybrid solver with the tools' findings about other questions.
    shuffled: Scored | None = None
    # The hybrid solver with the findings of a perfect tool.
    oracle: Scored | None = None
    # Its MLLM with the specialist's finding in its prompt, in one call.
    result_only: Scored | None = None
    # The hybrid solver shown only the text of findings.
    as_text: Scored | None = None
    # The hybrid solver shown only the pictures of findings.
    as_pictures: Scored | None = None
    # The hybrid solver whose model meets its tools in the form in which it was trained.
    as_trained: Scored | None = None
    # The hybrid solver in whose dialogue only the latest picture of a tool stays.
    latest_picture: Scored | None = None

    @property
    def parts(self) -> tuple[Scored, ...]:
        """The MLLM alone and the specialists alone, as far as they are there."""
        return tuple(one for one in (self.alone, self.specialist) if one is not None)


def comparison_groups(solvers: Sequence[Scored]) -> tuple[ComparisonGroup, ...]:
    """A group for each hybrid solver with real tools, in the order given.

    Its own run is looked in first, then the others; first repetitions stand for all.
    """
    own = [one for one in solvers if role(one) == "hybrid" and control(one) is None and repetition(one) == 1]
    own = [one for one in own if form_of(one) in (None, BOTH)]
    plain = {(one.model, word(one)) for one in own if asked_in(one) == USUAL}
    # A style, or fewer pictures, is a setting of the study of the same solver without; a judge's readings are of a
    # solver that is there.
    heads = [one for one in own if asked_in(one) == USUAL or (one.model, word(one)) not in plain]
    heads = [one for one in heads if not one.read_by_judge]
    # Next to a solver with a loop it is a setting of that solver's study, and no contestant of its own.
    heads = [one for one in heads if word(one) != RESULT_ONLY] or heads
    return tuple(_group_of(head, solvers) for head in heads)


def form_of(scored: Scored) -> str | None:
    """The form in which a model is shown findings (`text`, `image`, `both`); None where it was not recorded."""
    found = scored.identity.get("show")
    return found if isinstance(found, str) else None


USUAL = ("", "")


def asked_in(scored: Scored) -> tuple[str, str]:
    """The form of the tools, and the pictures that stay (`--keep-pictures`); empty where both are the usual."""
    model = scored.identity.get("model")
    kept = str(model.get("keep_pictures", "")) if isinstance(model, Mapping) else ""
    style = str((scored.identity.get("tool_style") or {}).get("name", PLAIN.name))
    return "" if style == PLAIN.name else style, kept


def _group_of(head: Scored, solvers: Sequence[Scored]) -> ComparisonGroup:
    own = style, kept = asked_in(head)

    def first(
        kind: Role,
        name: str,
        output: str = REAL,
        *,
        form: str | None = form_of(head),
        asked: Callable[[tuple[str, str]], bool] = own.__eq__,
    ) -> Scored | None:
        fitting = [one for one in solvers if (role(one), word(one), one.tool_output) == (kind, name, output)]
        fitting = [one for one in fitting if repetition(one) == 1]
        if kind != "specialist":
            fitting = [one for one in fitting if one.model == head.model]
        if kind == "hybrid":
            fitting = [one for one in fitting if form_of(one) == form and asked(asked_in(one))]
            tools = head.identity.get("tools_offered")
            fitting = [one for one in fitting if one.identity.get("tools_offered") == tools]
        return min(fitting, key=lambda one: one.folder is not head.folder, default=None)

    # Nothing of a tool reaches the MLLM alone, so that of a run with a control is as good as any.
    outputs = dict.fromkeys((REAL, *(one.tool_output for one in solvers)))
    alone = next((found for output in outputs if (found := first("mllm", ALONE, output))), None)
    return ComparisonGroup(
        head,
        alone,
        first("specialist", SPECIALIST),
        first("hybrid", word(head), "blank"),
        first("hybrid", word(head), "shuffled"),
        first("hybrid", word(head), "oracle"),
        first("hybrid", RESULT_ONLY) if word(head) != RESULT_ONLY else None,
        first("hybrid", word(head), form="text"),
        first("hybrid", word(head), form="image"),
        first("hybrid", word(head), asked=lambda one: one[0] not in ("", style) and one[1] == kept),
        first("hybrid", word(head), asked=lambda one: one == (style, "latest") != (style, kept)),
    )
