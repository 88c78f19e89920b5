"""An empty reply of an MLLM, treated alike by every solver: asked once more with the same words, then it is what it is.

    text = await words_of(kit.model, [kit.message(prompt)], kit.log)

Each empty reply is a step with `Fault.EMPTY_REPLY`. The empty message itself is not sent back: some providers refuse a
conversation that holds one. A reply that the provider refused to give is no empty one, and is not asked for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hybrid.errors import NotRecorded
from hybrid.messages import human, text_of
from hybrid.solving.kit import Log, ModelCall
from hybrid.types import Fault, Step

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage

EMPTY = "Your reply was empty. Answer the question."


async def words_of(model: ModelCall, messages: Sequence[BaseMessage], log: Log) -> str:
    """What the model says to a conversation without tools; empty where it said nothing twice, or refused.

    A recorded model that has no second reply has said what it said. Raises what the model raises.
    """
    reply = await model(messages)
    if not is_empty(reply, log):
        return text_of(reply)
    try:
        again = await model([*messages, human([EMPTY])])
    except NotRecorded:
        return text_of(reply)
    return text_of(reply if is_empty(again, log) else again)


def is_empty(reply: AIMessage, log: Log) -> bool:
    """Whether a reply without tool calls says nothing; notes it in the log, and a provider's refusal too."""
    if reply.response_metadata.get("refusal"):
        log.note(Step("rule", "refusal", "the provider refused to answer", fault=Fault.REFUSAL))
        return False
    if text_of(reply).strip():
        return False
    log.note(Step("rule", "empty reply", "the model said nothing", fault=Fault.EMPTY_REPLY))
    return True
