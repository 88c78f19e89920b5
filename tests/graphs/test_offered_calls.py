"""A call of every tool, built only from what the model is shown, reaches the tool unchanged.

The controller receives each call as a native call and as a block of text; a queue replaces the tool.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.core.images import ImageStore
from hybrid.core.messages import AssistantMessage, ToolCall
from hybrid.core.types import Finding, Kind, Outcome, Prompt
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.models.toolspec import IMAGE, IMAGES, spec
from hybrid.plugins.registry import load, load_solver, names
from tests.tables import stored

WRITTEN: dict[str, dict[str, Any]] = stored(__file__, "WRITTEN")


@pytest.mark.parametrize("style", ["native", "text"])
@pytest.mark.parametrize("name", names("tools"))
async def test_a_call_as_it_is_told_reaches_the_tool(name: str, style: str, tmp_path: Path, fakes: Any) -> None:
    tool = load("tools", name)
    properties = spec(tool)["function"]["parameters"]["properties"]
    assert set(WRITTEN[name]) <= set(properties)
    prompt = Prompt(("Which?", *fakes.refs(ImageStore(tmp_path), *range(tool.card.images[0]))), Kind.CHOICE, ("a", "b"))
    values = [ref.name for ref in prompt.images]
    images = {IMAGE: values[0]} if IMAGE in properties else {IMAGES: values}
    message = AssistantMessage("", (ToolCall("c1", name, {**images, **WRITTEN[name]}),))
    if style == "text":
        (block,) = as_text([message], ())
        message = with_calls(AssistantMessage(block.text), (tool,), ())
    ctx = replace(
        fakes.context_of(prompt, [message, "Answer: (A)"], [Finding("found", {}, 0.9, "classical", "1")]),
        tools_offered=(tool,),
    )
    reply = await load_solver("controller").ask(prompt, ctx)
    assert (reply.text, reply.outcome) == ("Answer: (A)", Outcome.ANSWERED)
    ((calls, options, args),) = ctx.tool.calls
    assert (calls, list(options)) == (name, values)
    # Every coordinate and word of the call is still there after validation by the tool's type.
    assert holds(tool.parse(args).model_dump(mode="json"), WRITTEN[name])


def holds(read: Any, text: Any) -> bool:
    """Return whether `read` contains everything in `text`, unchanged."""
    if isinstance(text, dict):
        return all(key in read and holds(read[key], value) for key, value in text.items())
    if isinstance(text, list):
        return len(read) == len(text) and all(map(holds, read, text))
    return bool(read == text)
