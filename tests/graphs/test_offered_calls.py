"""A call of every tool, made of nothing but what the model is told of it, reaches the tool as it was meant.

Written as a native call and as a block of text, through the controller; the tool's place is taken by a queue.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.images import ImageStore
from hybrid.messages import AssistantMessage, ToolCall
from hybrid.models.text_protocol import as_text, with_calls
from hybrid.models.toolspec import IMAGE, IMAGES, spec
from hybrid.registry import load, load_solver, names
from hybrid.types import Finding, Kind, Outcome, Prompt

CORNERS = {"x0": 1, "y0": 2, "x1": 9, "y1": 8}
WRITTEN: dict[str, dict[str, Any]] = {
    "attributes": {"texts": ["a red ball"], "box": {**CORNERS}},
    "correspondence": {"point": {"label": "REF"}, "candidates": [{"x": 3, "y": 4, "label": "A"}]},
    "crop": {"point": {"x": 3, "y": 4}, "share": 0.5, "scale": 2},
    "depth": {"points": [{"label": "A"}, {"x": 3, "y": 4}]},
    "detection": {"names": ["dog"], "threshold": 0.4},
    "forensics": {},
    "jigsaw": {"trim_px": 2},
    "localization": {"name": "dog", "boxes": [{**CORNERS, "label": "A"}], "labels": ["A"]},
    "markers": {"labels": ["A", "B"], "kind": "point"},
    "motion": {"focal_ratio": 0.9},
    "ocr": {"box": {**CORNERS}, "least_score": 0.3},
    "reflectance": {"points": [{"label": "A"}, {"label": "B"}]},
    "relation": {"subject": "cat", "relation": "on", "reference": "bed"},
    "saliency": {"boxes": [{**CORNERS, "label": "A"}], "columns": 2, "rows": 1},
    "scanpath": {"fixations": 4, "target": "cup"},
    "segmentation": {
        "points": [{"x": 3, "y": 4}],
        "away": [{"x": 9, "y": 9}],
        "box": {**CORNERS},
    },
    "semantic_correspondence": {"point": {"x": 3, "y": 4}, "candidates": [{"label": "A"}], "thing": "cat"},
    "similarity": {"aspect": "style"},
}


@pytest.mark.parametrize("style", ["native", "text"])
@pytest.mark.parametrize("name", names("tools"))
async def test_a_call_as_it_is_told_reaches_the_tool(name: str, style: str, tmp_path: Path, fakes: Any) -> None:
    tool = load("tools", name)
    told = spec(tool)["function"]["parameters"]["properties"]
    assert set(WRITTEN[name]) <= set(told)
    prompt = Prompt(("Which?", *fakes.refs(ImageStore(tmp_path), *range(tool.card.images[0]))), Kind.CHOICE, ("a", "b"))
    shown = [ref.name for ref in prompt.images]
    images = {IMAGE: shown[0]} if IMAGE in told else {IMAGES: shown}
    said = AssistantMessage("", (ToolCall("c1", name, {**images, **WRITTEN[name]}),))
    if style == "text":
        (block,) = as_text([said], ())
        said = with_calls(AssistantMessage(block.text), (tool,), ())
    ctx = replace(
        fakes.context_of(prompt, [said, "Answer: (A)"], [Finding("found", {}, 0.9, "classical", "1")]),
        tools_offered=(tool,),
    )
    reply = await load_solver("controller").ask(prompt, ctx)
    assert (reply.text, reply.outcome) == ("Answer: (A)", Outcome.ANSWERED)
    ((called, given, args),) = ctx.tool.calls
    assert (called, list(given)) == (name, shown)
    # Every coordinate and word of the call is still there once the tool's type has read it.
    assert holds(tool.parse(args).model_dump(mode="json"), WRITTEN[name])


def holds(read: Any, written: Any) -> bool:
    """Whether what was read has all that was written, and the same."""
    if isinstance(written, dict):
        return all(key in read and holds(read[key], value) for key, value in written.items())
    if isinstance(written, list):
        return len(read) == len(written) and all(map(holds, read, written))
    return bool(read == written)
