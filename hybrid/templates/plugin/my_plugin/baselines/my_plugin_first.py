"""The first option, whatever it is: an example to be changed.

`hybrid run blink --data sample --solver my_plugin_first`
"""

from __future__ import annotations

from hybrid.solver import LETTERS, Outcome, Prompt, Reply, Solver, SolverContext


class MyPluginFirst(Solver):
    """Answers with the first option, without looking at the question."""

    role = "chance"

    async def ask(self, prompt: Prompt, ctx: SolverContext) -> Reply:
        """Answer with the letter of the first option; abstain if there are no options."""
        if not prompt.choices:
            return Reply("", Outcome.ABSTAINED)
        ctx.rule("first", "the first option, whatever it is")
        return Reply(f"({LETTERS[0]})")


SOLVER = MyPluginFirst()
