"""What tells runs with different menus apart: `without depth`, `only depth`, `no tools`, `tools depth, crop`.

    menu_words([full, without_depth])        # [(), ("without depth",)]

Only a solver that offers a model the menu differs by it: the MLLM alone is the same in all of these runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.registry import load_solver, solver_names
from hybrid.scoring.groups import is_imported, word
from hybrid.scoring.score import Scored

FEW = 2
"""So many missing tools are named as missing; where more are, the menu is named."""


def tools_words(solvers: Sequence[Scored]) -> list[tuple[str, ...]]:
    """For each solver what its menu is called among those of the same word; nothing where their menus are one."""
    tools_offered_by = [_tools_offered(one) for one in solvers]
    found: list[tuple[str, ...]] = []
    for one, tools_offered in zip(solvers, tools_offered_by, strict=True):
        if tools_offered is None:
            found.append(())
            continue
        among = [
            other
            for each, other in zip(solvers, tools_offered_by, strict=True)
            if other is not None and _alike(one, each)
        ]
        found.append(_called(tools_offered, among))
    return found


def _alike(one: Scored, other: Scored) -> bool:
    return (one.benchmark, word(one)) == (other.benchmark, word(other))


def _tools_offered(scored: Scored) -> tuple[str, ...] | None:
    """The tools that a solver offered; None for one that offers none or whose menu nobody recorded."""
    if scored.folder is None or is_imported(scored) or word(scored) not in solver_names():
        return None
    tools_offered = scored.folder.manifest["identity"].get("tools_offered")
    return tuple(tools_offered) if tools_offered is not None and load_solver(word(scored)).offers_tools else None


def _called(tools_offered: tuple[str, ...], among: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What a menu is called among others: nothing where it holds every tool of theirs."""
    whole = dict.fromkeys(name for other in among for name in other)
    missing = [name for name in whole if name not in tools_offered]
    if not missing:
        return ()
    if not tools_offered:
        return ("no tools",)
    if len(tools_offered) == 1:
        return (f"only {tools_offered[0]}",)
    return (f"without {', '.join(missing)}",) if len(missing) <= FEW else (f"tools {', '.join(tools_offered)}",)
