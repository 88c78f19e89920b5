"""An empty reply of an MLLM, treated alike by every solver: asked once more with the same words, then it is what it is.

    text = await words_of(kit.model, [kit.message(prompt)], kit.log)

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
    """What the model says to a conversation without tools; empty where it said nothing twice, or refused.

    A recorded model that has no second reply has said what it said. Raises what the model raises.
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
