"""The tools as LangChain tools, for any agent.

    from langchain.agents import create_agent
    from hybrid.integrations.langchain import langchain_tools

    agent = create_agent("openai:gpt-4o", langchain_tools(["crop", "depth"], folder="pictures"))

A model names an image by its path relative to the folder, or gives a data URL; a program may also pass a `Path`, bytes,
a Pillow image or an array. The result is content blocks, text first and then pictures, with the numbers of the tool
output as the artifact of the message. If a tool cannot answer, the model gets an error message.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from hybrid.config import ServiceOptions
from hybrid.config.python_words import python_errors
from hybrid.core.errors import HybridError
from hybrid.core.images import PNG
from hybrid.core.secrets import redact
from hybrid.integrations.pictures import Folder
from hybrid.integrations.toolbox import Toolbox, tools_of
from hybrid.interface.findings import wait_for
from hybrid.plugins.discovery import add_path
from hybrid.plugins.weights_option import weights_from_python
from hybrid.tool import Tool

# Content blocks, and the tool output as JSON: text, data, confidence, backend, version, notes.
Returned = tuple[list[dict[str, Any]], dict[str, Any]]


def langchain_tools(
    names: Iterable[str | Tool] | None = None,
    *,
    path: str | Path | Sequence[str | Path] = (),
    folder: str | Path | None = None,
    backend: Literal["auto", "learned", "classical"] = "auto",
    weights: str | Path | Mapping[str, str | Path] | None = None,
    device: str = "cpu",
    in_run: bool = False,
) -> list[BaseTool]:
    """Return the specialists as LangChain tools, which share loaded weights and the cache on disk.

    Args:
        names: as `hybrid tools list` prints them, and tools of your own; None for all that are found.
        path: folders of further tools, as `--path` names them.
        folder: the folder whose images a model may name; None if images come only as data.
        backend: the backends that may answer, as in `--backend`.
        weights: a folder or hub id for each tool's learned backend, by tool; for a single tool, also without its name.
        device: `cpu`, `mps`, `cuda` or `cuda:N,cuda:M`.
        in_run: whether the tools are for an agent that a run asks (`hybrid.solving.agent`), which names images as its
            question shows them, `img:1`.

    Raises:
        UsageError: unknown tool name, or missing folder.
    """
    allowed = None if folder is None else Folder(Path(folder))
    with python_errors():
        add_path(path)
        selected = None if names is None else list(names)
        tools = tools_of(selected)
        options = ServiceOptions(
            backend=backend, weights=weights_from_python(weights, list(tools.values())), device=device
        )
        toolbox = Toolbox.of(tools.values(), options, allowed, in_run=in_run)
    return [_tool(toolbox, name) for name in toolbox.tools]


def _tool(toolbox: Toolbox, name: str) -> BaseTool:
    async def call(**arguments: Any) -> Returned:
        try:
            finding = await toolbox.call(name, arguments)
        except (HybridError, OSError) as error:
            raise ToolException(redact(str(error))) from error
        # LangChain's own block constructors add random ids, so equal answers would differ.
        pngs = (base64.b64encode(png).decode() for png in finding.pngs)
        pictures = [{"type": "image", "base64": png, "mime_type": PNG} for png in pngs]
        blocks = [{"type": "text", "text": finding.text}, *pictures]
        return blocks, finding.as_json()

    return StructuredTool(
        name=name,
        description=toolbox.describe(name),
        args_schema=toolbox.schema(name),
        func=lambda **arguments: wait_for(call(**arguments)),
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
    )
