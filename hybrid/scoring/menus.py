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


def menu_words(solvers: Sequence[Scored]) -> list[tuple[str, ...]]:
    """For each solver what its menu is called among those of the same word; nothing where their menus are one."""
    menus = [_menu(one) for one in solvers]
    found: list[tuple[str, ...]] = []
    for one, menu in zip(solvers, menus, strict=True):
        if menu is None:
            found.append(())
            continue
        among = [other for each, other in zip(solvers, menus, strict=True) if other is not None and _alike(one, each)]
        found.append(_called(menu, among))
    return found


def _alike(one: Scored, other: Scored) -> bool:
    return (one.benchmark, word(one)) == (other.benchmark, word(other))


def _menu(scored: Scored) -> tuple[str, ...] | None:
    """The tools that a solver offered; None for one that offers none or whose menu nobody recorded."""
    if scored.folder is None or is_imported(scored) or word(scored) not in solver_names():
        return None
    menu = scored.folder.manifest["identity"].get("menu")
    return tuple(menu) if menu is not None and load_solver(word(scored)).offers_menu else None


def _called(menu: tuple[str, ...], among: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """What a menu is called among others: nothing where it holds every tool of theirs."""
    whole = dict.fromkeys(name for other in among for name in other)
    missing = [name for name in whole if name not in menu]
    if not missing:
        return ()
    if not menu:
        return ("no tools",)
    if len(menu) == 1:
        return (f"only {menu[0]}",)
    return (f"without {', '.join(missing)}",) if len(missing) <= FEW else (f"tools {', '.join(menu)}",)
