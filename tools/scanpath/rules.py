"""The rules of scanpath: a predicted path of as many fixations as are asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from hybrid.tool.rules import Rule, RuleContext, SpecialistAnswer, asks, image_names
from hybrid.types import Json, Prompt

# Most fixations that the scanpath tool predicts in one call.
MOST_FIXATIONS: Final = 12
USUAL_FIXATIONS: Final = 6


@asks("scanpath")
async def scanpath(prompt: Prompt, ctx: RuleContext) -> SpecialistAnswer | None:
    """Q9 and Q12: a predicted path of as many fixations as are asked for; Q12 names a target."""
    number = min(prompt.given.fixations or USUAL_FIXATIONS, MOST_FIXATIONS)
    args: dict[str, Json] = {"fixations": max(1, number)}
    if prompt.given.target is not None:
        args["target"] = prompt.given.target
    finding = await ctx.tool("scanpath", image_names(prompt), args)
    lists = [finding.data.get(key) for key in ("x_0_1", "y_0_1", "t_ms")]
    if not all(isinstance(values, Sequence) and values for values in lists):
        return None
    answer = "\n".join(f"{axis} = {values}" for axis, values in zip("XYT", lists, strict=True))
    return SpecialistAnswer(answer, "scanpath", finding)


# By route.
RULES: Mapping[str, Rule] = {"Q9": scanpath, "Q12": scanpath}
