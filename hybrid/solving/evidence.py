"""A finding as it is shown to a model that called no tool: the text of `verify` and of `result_only`.

message = ctx.message(prompt, *evidence(prompt, ctx, finding))
"""

from __future__ import annotations

from hybrid.messages import finding_parts
from hybrid.solving.image_sizes import image_sizes
from hybrid.solving.solver import SolverContext
from hybrid.types import Finding, ImageRef, Prompt

EVIDENCE = "A specialist tool looked at the image{plural}: {sizes}. What it found:"


def evidence(prompt: Prompt, ctx: SolverContext, finding: Finding) -> list[str | ImageRef]:
    """The sizes of the prompt's images, then text and pictures of the finding as `--show` has them."""
    names = [image.name for image in prompt.images]
    heading = EVIDENCE.format(plural="s" if len(names) > 1 else "", sizes=image_sizes(prompt.images, ctx.frame))
    shown = finding_parts(finding, names, ctx.show)
    return [heading, *(part if isinstance(part, str) else part.ref for part in shown)]
