"""The environment variables of the project, for its documentation and for suggestions of similar names.

for variable in VARIABLES:
    variable.name, variable.about
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hybrid.config import RunConfig
from hybrid.config.command_options import PATH
from hybrid.config.option import option_fields


@dataclass(frozen=True)
class Variable:
    """An environment variable that the project reads."""

    name: str
    # The variable's content, and the default if it is not set.
    about: str


VARIABLES: Final = (
    Variable(
        "HYBRID_HOME",
        "The folder of images, tool outputs and generated data; else `hybrid` in `$XDG_CACHE_HOME` or `~/.cache`.",
    ),
    *(
        Variable(
            option.variable, f"Default of `{option.name}`{'; ' * bool(option.about_variable)}{option.about_variable}."
        )
        for option in (field.option for field in option_fields(RunConfig))
        if option.variable
    ),
    Variable(PATH.variable, "Folders of plug-ins, separated as in `PATH`."),
    Variable("HYBRID_VLLM", "The program that `vllm:NAME` starts; else `vllm` on the PATH."),
    Variable("HYBRID_SGLANG", "The program that `sglang:NAME` starts; else `sglang` on the PATH."),
    Variable("HYBRID_LLAMACPP", "The program that `llamacpp:FILE_OR_REPO` starts; else `llama-server` on the PATH."),
    Variable(
        "HYBRID_STUDIO_IMAGES",
        "The folder below which the graph in Studio opens pictures by path; else the folder in which it was started.",
    ),
)
