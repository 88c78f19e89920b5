"""The cases of a conclusion as a page: when each sentence is said, and its words."""

from __future__ import annotations

from _reference.markdown import Page, code, escaped, table
from hybrid.scoring.conclusion_cases import CASES

INTRODUCTION = """# The conclusion

`hybrid quickstart`, `hybrid run`, `hybrid score`, `hybrid compare`, `hybrid study` and the report begin with the same
sentences, at most five, made from the rows that `hybrid compare --json` prints, where they stand as `conclusion`:

1. what the model gains with tools over itself alone, with the 95 % interval and the number of questions (`gain`);
2. what it gains over the specialists alone (`specialists`);
3. what of it comes from what the tools say, or the command that runs the blank control (`content`);
4. on which tasks it is behind its model alone (`tasks`);
5. what limits the claim (`limits`).

Without a solver that gives a model tools, the first two name the solver with the highest value (`solvers`) and those
that it is ahead of (`ahead`).

A gain or a loss is said only where the paired 95 % interval excludes 0 under both rules of what a question without a
readable answer counts (a guess, or wrong); the interval printed is the one nearest to 0. An interval that holds or
touches 0 is "no difference that N questions can show", which is not equality. The smallest difference that the
questions show in four cases of five is that of `hybrid plan --questions N`. Of several solvers with tools, or several
models, the differences are adjusted after Holm over them. Tasks are read by the rule of the tables; their intervals are
not adjusted, and the sentence says how many of them hold after adjustment.
"""


def pages() -> tuple[Page, ...]:
    """One page with every case."""
    rows = [(code(case.id), escaped(case.condition), escaped(case.words)) for case in CASES]
    text = f"{INTRODUCTION}\n{table(('case', 'condition', 'words'), rows)}\n"
    return (Page("reference/conclusion.md", "The conclusion", text),)
