"""Words for runs that offer different tools: `without depth`, `only depth`, `no tools`, `tools depth, crop`.

    tools_words([full, without_depth])        # [(), ("without depth",)]

Only a solver that offers a model tools differs by them: the MLLM alone is the same in all of these runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.registry import load_solver, solver_names
from hybrid.scoring.groups import is_imported, word
from hybrid.scoring.score import Scored

# So many missing tools are named as missing; where more are, the tools offered are named.
FEW = 2


def tools_words(solvers: Sequence[Scored]) -> list[tuple[str, ...]]:
    """For each solver the words for its tools among those of the same name; none where all offer the same tools."""
    # None for a solver that offers none or whose tools were not recorded.
    offered: list[tuple[str, ...] | None] = []
    for one in solvers:
        tools = None if is_imported(one) or word(one) not in solver_names() else one.identity.get("tools_offered")
        offered.append(tuple(tools) if tools is not None and load_solver(word(one)).offers_tools else None)
    named = [(one.benchmark, word(one)) for one in solvers]
    # Of each solver every tool that it or another of its name offers.
    whole = [
        [tool for other, own in zip(named, offered, strict=True) if other == name for tool in own or ()]
        for name in named
    ]
    words: list[tuple[str, ...]] = []
    for tools_of_one, every in zip(offered, whole, strict=True):
        missing = [name for name in dict.fromkeys(every) if name not in (tools_of_one or ())]
        if tools_of_one is None or not missing:
            words.append(())
        elif len(tools_of_one) < 2:
            words.append((f"only {tools_of_one[0]}" if tools_of_one else "no tools",))
        else:
            few = len(missing) <= FEW
            words.append((f"without {', '.join(missing)}" if few else f"tools {', '.join(tools_of_one)}",))
    return words
