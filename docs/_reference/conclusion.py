"""The cases of a conclusion as a page: the condition of each sentence, and its wording."""

from __future__ import annotations

from _reference.markdown import Page, code, escaped, table
from hybrid.scoring.conclusion import cases

INTRODUCTION = """# The conclusion

`hybrid quickstart`, `hybrid run`, `hybrid score`, `hybrid compare`, `hybrid study` and the report begin with the same
sentences, at most ten. They are made from the rows that `hybrid compare --json` prints, where they are under
`conclusion`:

0. for several models, the effect of tools over all of them (`pooled`);
1. the metric with tools and alone, their difference with its 95 % interval, and how seldom a tool was called (`gain`);
2. the difference from the specialists alone (`specialists`);
3. the effects of offering tools and of tool output, or the command that runs the control with blank tools (`content`);
4. what a reviewer asks next, if it changes the conclusion: whether a gain can be detected (`room`), what is equal
   within the margin (`equal`), whether tool output is used (`used`), what it adds where a tool is called
   (`selection`), whether tools are called where they are right (`calls`), whether calls look at the annotated place
   (`places`), and what a gain costs (`price`);
5. the tasks on which the model is worse or better with tools (`tasks`);
6. the limits of the claim (`limits`).

If no solver gives tools to a model, the first two sentences name the solver with the highest value (`solvers`) and the
solvers that it is ahead of (`ahead`).

A difference is asserted only if its paired 95 % interval excludes 0. The effects of offering tools and of tool output
must also hold after adjustment (Holm) within the family of the claim, and differences within tasks after adjustment
over the tasks of the pair. "No significant difference" is not equality; "equal within 5 points" appears only if two
one-sided tests show it. A difference counts as neither gain nor loss if the questions that both solvers
answered do not confirm it, if it depends on how unanswered questions count, or if a mean over tasks and all questions
lead to another conclusion: see
[Statistics](../statistics.md#questions-that-one-solver-leaves-unanswered). Numbers of right answers are given if they
are the metric, but not for a mean over tasks of different sizes. The difference with 80 % power follows from the spread
of this run, the weights of its metric, and, below 30 questions, the exact test. With several solvers with tools, or
several models, the differences are adjusted over all of them. `python -m bench.sentences` measures how often these
statements are true.
"""


def pages() -> tuple[Page, ...]:
    """Return the single page with every case."""
    rows = [(code(case.id), escaped(case.condition), escaped(case.words)) for case in cases().values()]
    text = f"{INTRODUCTION}\n{table(('case', 'condition', 'words'), rows)}\n"
    return (Page("reference/conclusion.md", "The conclusion", text),)
