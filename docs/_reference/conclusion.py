"""The cases of a conclusion as a page: the condition of each sentence, and its wording."""

from __future__ import annotations

from _reference.markdown import Page, code, escaped, table
from hybrid.scoring.conclusion import cases

INTRODUCTION = """# The conclusion

`hybrid quickstart`, `hybrid run`, `hybrid score`, `hybrid compare`, `hybrid study` and the report begin with the same
sentences, at most ten, made from the rows that `hybrid compare --json` prints, where they stand as `conclusion`:

0. of several models, what tools bring over all of them (`pooled`);
1. the metric with tools and alone, their difference with its 95 % interval, and how seldom a tool was called (`gain`);
2. the difference to the specialists alone (`specialists`);
3. what of it blank tools bring or cost already, what the tools say adds or costs, or the command that runs the blank
   control (`content`);
4. what a reviewer asks next, where it decides something: whether a gain could show (`room`), what is equal within the
   margin (`equal`), whether tool output is used (`used`), what it brings where a tool is called (`selection`), whether
   tools are called where they are right (`calls`), whether calls look at the annotated place (`places`), and what a
   gain costs (`price`);
5. on which tasks it is worse or better (`tasks`);
6. what limits the claim (`limits`).

Without a solver that gives a model tools, the first two name the solver with the highest value (`solvers`) and the
solvers that it is ahead of (`ahead`).

A difference is asserted only if its paired 95 % interval excludes 0. The effects of offering tools and of tool output
must also hold after adjustment (Holm) within the family of the claim, and differences within tasks after adjustment
over the tasks of the pair. "No significant difference" is not equality; "equal within 5 points" appears only if two
one-sided tests show it. A difference that comes from answering more questions, that depends on how unanswered questions
count, or whose sign differs over all questions, counts as neither gain nor loss: see
[Statistics](../statistics.md#questions-that-one-solver-leaves-unanswered). Numbers of right answers are given if they
are the metric, but not for a mean over tasks of different sizes. The difference with 80 % power follows from the spread
of this run, the weights of its metric, and, below 30 questions, the exact test. Of several solvers with tools, or
several models, the differences are adjusted over them. `python -m bench.sentences` measures how often these statements
are true.
"""


def pages() -> tuple[Page, ...]:
    """Return the single page with every case."""
    rows = [(code(case.id), escaped(case.condition), escaped(case.words)) for case in cases().values()]
    text = f"{INTRODUCTION}\n{table(('case', 'condition', 'words'), rows)}\n"
    return (Page("reference/conclusion.md", "The conclusion", text),)
