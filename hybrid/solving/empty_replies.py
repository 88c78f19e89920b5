"""Empty replies of an MLLM, handled the same way by every solver: one retry, and the second reply counts.

    text = await words_of(ctx.model, [ctx.message(prompt)], ctx.log)

Each empty reply is a step with `Fault.EMPTY_REPLY`. The empty message itself is not sent back, because some providers
reject a conversation that contains one. A reply that the provider refused is not empty, and is not requested again.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.core.errors import NotRecorded
from hybrid.core.messages import AssistantMessage, End, Message, user_message
from hybrid.core.thinking import without_thoughts
from hybrid.core.types import Fault, Step
from hybrid.solving.solver import AskModel, Log

EMPTY = "Your reply was empty. Answer the question."


async def words_of(model: AskModel, messages: Sequence[Message], log: Log) -> str:
    """Return the text of the model's reply to a conversation without tools; empty if refused or empty twice.

    For a recorded model without a second reply, the first reply counts. Raises the model's exceptions.
    """
    reply = await model(messages)
    if note_withheld(reply, log):
        return ""
    if not is_empty(reply, log):
        return reply.text
    try:
        second_reply = await model([*messages, user_message([EMPTY])])
    except NotRecorded:
        return reply.text
    if note_withheld(second_reply, log):
        return ""
    return reply.text if is_empty(second_reply, log) else second_reply.text


# Reasons for the trace why a reply is not an answer of the model.
WITHHELD = {
    End.FILTERED: "a filter of the provider stopped the reply",
    End.UNFINISHED: "the provider did not let the model finish",
    End.MALFORMED_CALL: "the server could not read the call that the model wrote",
}


def note_withheld(reply: AssistantMessage, log: Log) -> bool:
    """Return whether a reply without tool calls was withheld and must not be requested again; log why.

    This is so if the provider refused, filtered or did not finish the reply, or if the reply is a call that the server
    could not parse.
    """
    malformed = reply.end is End.MALFORMED_CALL
    if not (reply.is_withheld or malformed):
        return False
    cause = WITHHELD.get(reply.end, "the provider refused to answer")
    reason = f" ({reply.finish_reason})" if reply.finish_reason else ""
    fault = Fault.UNREADABLE_CALL if malformed else Fault.REFUSAL
    log.note(Step("rule", fault.value.replace("_", " "), cause + reason, fault=fault))
    return True


def is_empty(reply: AssistantMessage, log: Log) -> bool:
    """Return whether a reply without tool calls is empty; log it if so."""
    if without_thoughts(reply.text).strip():
        return False
    # A reply that consists only of thoughts is not requested again, because it may still contain an answer.
    cause, remedy = "the model said nothing", ""
    # The data in the reply's step distinguish a reply of thoughts alone from one that was cut before any text.
    if reply.is_cut or reply.reasoning or reply.text.strip():
        cause = f"the reply {'is all reasoning' if reply.reasoning or reply.text.strip() else 'says nothing'}"
    if reply.end is End.CONTEXT_FULL:
        cause += ": the model's context was full"
        remedy = "send smaller pictures (--max-pixels), or start the server with a longer context"
    elif reply.is_cut:
        cause += ": it ended at the token limit"
        remedy = "raise --max-tokens, or ask for less with --reasoning-effort"
    elif reply.reasoning:
        cause += ": the server's reasoning parser never saw the end of the thoughts"
        remedy = "start the server with this model's reasoning parser, or with none"
    log.note(Step("rule", "empty reply", cause, fault=Fault.EMPTY_REPLY, data={"remedy": remedy} if remedy else {}))
    return not reply.text.strip()
