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
    if reply.text.strip():
        return False
    log.note(Step("rule", "empty reply", "the model said nothing", fault=Fault.EMPTY_REPLY))
    return True
