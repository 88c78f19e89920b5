"""An empty reply of an MLLM, treated alike by every solver: the model is asked once more, and the second reply counts.

    text = await words_of(ctx.model, [ctx.message(prompt)], ctx.log)

Each empty reply is a step with `Fault.EMPTY_REPLY`. The empty message itself is not sent back: some providers refuse a
conversation that holds one. A reply that the provider refused to give is no empty one, and is not asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.errors import NotRecorded
from hybrid.messages import AssistantMessage, Message, user_message
from hybrid.solving.solver import AskModel, Log
from hybrid.thoughts import without_thoughts
from hybrid.types import Fault, Step

EMPTY = "Your reply was empty. Answer the question."


async def words_of(model: AskModel, messages: Sequence[Message], log: Log) -> str:
    """The text of the model's reply to a conversation without tools; empty where two replies were, or it refused.

    Of a recorded model without a second reply the first counts. Raises what the model raises.
    """
    reply = await model(messages)
    if not is_empty(reply, log):
        return reply.text
    try:
        again = await model([*messages, user_message([EMPTY])])
    except NotRecorded:
        return reply.text
    return reply.text if is_empty(again, log) else again.text


def is_empty(reply: AssistantMessage, log: Log) -> bool:
    """Whether a reply without tool calls says nothing; notes it in the log, and a provider's refusal too."""
    if reply.refusal is not None:
        log.note(Step("rule", "refusal", "the provider refused to answer", fault=Fault.REFUSAL))
        return False
    if without_thoughts(reply.text).strip():
        return False
    # A text of nothing but thoughts is not asked for again: it may hold an answer all the same.
    why, remedy = "the model said nothing", ""
    # Both follow from what its step in the trace holds.
    if reply.is_cut or reply.reasoning or reply.text.strip():
        why = f"the reply {'is all reasoning' if reply.reasoning or reply.text.strip() else 'says nothing'}"
    if reply.is_cut:
        why += ": it ended by the limit of tokens"
        remedy = "raise --max-tokens, or ask for less with --reasoning-effort"
    elif reply.reasoning:
        why += ": the server's reasoning parser never saw the end of the thoughts"
        remedy = "start the server with the reasoning parser of this model, or with none"
    log.note(Step("rule", "empty reply", why, fault=Fault.EMPTY_REPLY, data={"remedy": remedy} if remedy else {}))
    return not reply.text.strip()
