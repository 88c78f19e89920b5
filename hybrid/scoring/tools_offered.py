"""Names for runs that offer different tools: `without depth`, `only depth`, `no tools`, `tools depth, crop`.

    tools_words([full, without_depth])        # [(), ("without depth",)]

Only solvers that offer tools to a model get such names: the MLLM alone is the same in all runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.plugins.registry import load_solver, solver_names
from hybrid.scoring.groups import is_imported, word
from hybrid.scoring.score import Scored

# Up to this many missing tools are named; if more are missing, the offered tools are named.
FEW = 2


def tools_words(solvers: Sequence[Scored]) -> list[tuple[str, ...]]:
    """Return for each solver words that distinguish its tools among solvers of its name; none if all are equal."""
    # None for a solver that offers no tools or whose tools were not recorded.
    offers: list[tuple[str, ...] | None] = []
    for solver in solvers:
        tools = (
            None if is_imported(solver) or word(solver) not in solver_names() else solver.identity.get("tools_offered")
        )
        offers.append(tuple(tools) if tools is not None and load_solver(word(solver)).offers_tools else None)
    keys = [(solver.benchmark, word(solver)) for solver in solvers]
    # For each solver, every tool that any solver of its name offers.
    all_tools = [
        [tool for other, tools in zip(keys, offers, strict=True) if other == name for tool in tools or ()]
        for name in keys
    ]
    words: list[tuple[str, ...]] = []
    for tools_of_one, known_tools in zip(offers, all_tools, strict=True):
        missing = [name for name in dict.fromkeys(known_tools) if name not in (tools_of_one or ())]
        if tools_of_one is None or not missing:
            words.append(())
        elif len(tools_of_one) < 2:
            words.append((f"only {tools_of_one[0]}" if tools_of_one else "no tools",))
        else:
            few = len(missing) <= FEW
            words.append((f"without {', '.join(missing)}" if few else f"tools {', '.join(tools_of_one)}",))
    return words
