"""The environment variables of the project, for its documentation; each is read where it is used.

for variable in VARIABLES:
    variable.name, variable.about
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Variable:
    """An environment variable that the project reads."""

    name: str
    about: str
    """What it says, and what holds where it is not set."""


VARIABLES: Final = (
    Variable(
        "HYBRID_HOME",
        "The folder of images, findings of tools and generated data; else `hybrid` in `$XDG_CACHE_HOME` or `~/.cache`.",
    ),
    Variable("HYBRID_MODEL", "What `--model` is where it is not given; also the model of the graph in Studio."),
    Variable("HYBRID_BASE_URL", "What `--base-url` is, for models of the provider that `HYBRID_MODEL` names."),
    Variable("HYBRID_DEVICE", "What `--device` is where it is not given."),
    Variable("HYBRID_DATA_NAME", "What `--data` is for the benchmark NAME, in capitals: `HYBRID_DATA_BLINK`."),
    Variable("HYBRID_TOOL_PATH", "Folders of further tools, as `--tool-path` takes them, divided as in `PATH`."),
    Variable(
        "HYBRID_STUDIO_IMAGES",
        "The folder below which the graph in Studio opens pictures by path; else the folder it was started in.",
    ),
)
