"""Words for runs that offer different tools: `without depth`, `only depth`, `no tools`, `tools depth, crop`.

    tools_words([full, without_depth])        # [(), ("without depth",)]

Only a solver that offers a model tools differs by them: the MLLM alone is the same in all of these runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.registry import load_solver, solver_names
from hybrid.scoring.groups import is_imported, word
from hybrid.scoring.score import Scored

FEW = 2
"""So many missing tools are named as missing; where more are, the tools offered are named."""


def tools_words(solvers: Sequence[Scored]) -> list[tuple[str, ...]]:
    """For each solver the words for its tools among those of the same name; none where all offer the same tools."""
    tools_offered_by = [_tools_offered(one) for one in solvers]
    words: list[tuple[str, ...]] = []
    for one, tools_offered in zip(solvers, tools_offered_by, strict=True):
        if tools_offered is None:
            words.append(())
            continue
        among = [
            other
            for each, other in zip(solvers, tools_offered_by, strict=True)
            if other is not None and ((one.benchmark, word(one)) == (each.benchmark, word(each)))
        ]
        words.append(_called(tools_offered, among))
    return words


def _tools_offered(scored: Scored) -> tuple[str, ...] | None:
    """The tools that a solver offered; None for one that offers none or whose tools were not recorded."""
    if scored.folder is None or is_imported(scored) or word(scored) not in solver_names():
        return None
    tools_offered = scored.manifest["identity"].get("tools_offered")
    return tuple(tools_offered) if tools_offered is not None and load_solver(word(scored)).offers_tools else None


def _called(tools_offered: tuple[str, ...], among: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The words for the tools offered among others; none where every tool of the others is offered."""
    whole = dict.fromkeys(name for other in among for name in other)
    missing = [name for name in whole if name not in tools_offered]
    if not missing:
        return ()
    if not tools_offered:
        return ("no tools",)
    if len(tools_offered) == 1:
        return (f"only {tools_offered[0]}",)
    return (f"without {', '.join(missing)}",) if len(missing) <= FEW else (f"tools {', '.join(tools_offered)}",)
