"""What a model reads of its own thinking after a tool has returned a picture, for each treatment by a server.

python -m bench.picture_prompts
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import hybrid
from bench._frame import options
from bench._picture_server import THOUGHT, Treatment, serving
from hybrid.config import ModelSettings, RunConfig, ServiceOptions
from hybrid.config.words import ToolPictures
from hybrid.display.notes import quietly

SWITCH: Final = ("preserve_thinking", True)
# What is shown, the server, and the place of the picture.
CASES: Final[Sequence[tuple[str, Treatment, ToolPictures]]] = (
    ("in a user message behind the tool message", Treatment(thinks=True, inside="taken"), "beside"),
    ("inside the tool message", Treatment(thinks=True, inside="taken"), "auto"),
    ("in a user message, with the template's switch", Treatment(thinks=True, switch=SWITCH), "auto"),
)


def last_prompt(treatment: Treatment, place: ToolPictures, folder: Path) -> str:
    """The prompt of the last request of one question."""
    with serving(treatment) as server, quietly():
        settings = ModelSettings(base_url=server.url, retries=0, tool_pictures=place)
        asked: dict[str, Any] = {"data": "sample", "tasks": ("Spatial_Relation",), "limit": 1, "tools": ("crop",)}
        service = ServiceOptions("classical")
        model = "openai:a-model-that-thinks"
        hybrid.run(
            RunConfig("blink", ("controller",), model, model_settings=settings, service=service, out=folder, **asked)
        )
    return server.prompts[-1]


def main(words: Sequence[str] | None = None) -> int:
    """Print the prompts; 1 if thinking is lost where it must be kept."""
    options(__doc__, {}, words)
    kept = []
    with tempfile.TemporaryDirectory() as home:
        for at, (name, treatment, place) in enumerate(CASES):
            prompt = last_prompt(treatment, place, Path(home) / str(at))
            kept.append(prompt.count(THOUGHT))
            # Without the instructions and the question, which are the same in all.
            print(f"## {name}: {kept[-1]} of 1 thoughts, {len(prompt.split())} words\n")
            print(prompt[prompt.index("<|assistant|>") :], end="\n\n")
    return int(kept != [0, 1, 1])


if __name__ == "__main__":
    raise SystemExit(main())
