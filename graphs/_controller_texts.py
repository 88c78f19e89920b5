"""The controller's messages to a model in addition to the question; the manifest has their hash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from hybrid.core.messages import UserMessage
from hybrid.core.types import Prompt
from hybrid.models.toolspec import PublishedTool
from hybrid.plugins.prompt_texts import read_texts
from hybrid.solving.empty_replies import EMPTY
from hybrid.solving.image_sizes import image_sizes
from hybrid.solving.solver import SolverContext

TEXTS: Mapping[str, str] = {**read_texts(Path(__file__).with_suffix(".toml")), "empty": EMPTY}


def opening_message(prompt: Prompt, ctx: SolverContext) -> UserMessage:
    """Return the prompt, followed by names and sizes of its images and of their regions that tools may use."""
    images = [*prompt.images, *prompt.derived]
    texts = [TEXTS["images"].format(sizes=image_sizes(images, ctx.frame))] if images else []
    texts = texts if _offers(ctx, published=False) else []
    texts += [ctx.style.question] if ctx.style.question and _offers(ctx, published=True) else []
    return ctx.message(prompt, *texts)


def _offers(ctx: SolverContext, *, published: bool) -> bool:
    """Return whether any tool is offered in the style's form (`published`) or, otherwise, in hybrid's own form."""
    return any(isinstance(tool, PublishedTool) is published for tool in ctx.tools_offered)


def system_text(ctx: SolverContext) -> str:
    """Return the controller's instructions: budgets, coordinate frame, and the trust in each tool if measured.

    The style's own text comes first; it is the only text if every tool has the style's form.
    """
    system_texts = [ctx.style.system] if ctx.style.system and _offers(ctx, published=True) else []
    if not _offers(ctx, published=False):
        return "\n\n".join(system_texts)
    limits = ctx.meter.limits
    note = "" if ctx.frame.name == "pixels" else TEXTS["frame_note"]
    text = TEXTS["instructions"].format(frame=ctx.frame.words, note=note, calls=limits.tool_calls, turns=limits.turns)
    lines = [
        f"{tool.card.name}: {value:.0%}"
        for tool in ctx.tools_offered
        if (value := ctx.trust.overall(tool.card.name)) is not None
    ]
    return "\n\n".join([*system_texts, "\n".join([text, TEXTS["trust"], *lines]) if lines else text])
