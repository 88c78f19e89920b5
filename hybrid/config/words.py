"""The words that options take where they are one of a few."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

ToolCalling = Literal["native", "text", "auto"]
# Whether a model is sent its own earlier thoughts with the conversation.
Thoughts = Literal["keep", "drop"]
Streaming = Literal["auto", "on", "off"]
# Where a tool's picture goes in a request: inside the tool message, or in a user message behind it. `auto` asks the
# server once.
ToolPictures = Literal["auto", "inside", "beside"]
Backends = Literal["auto", "learned", "classical"]
FLOAT32: Final = "float32"
# In which numbers the networks of tools compute (`hybrid/serving/precision.py`).
Dtypes = Literal["auto", "float32", "bfloat16", "float16"]
# How a crop or an overlay is stored: `auto` as JPEG where the image that it was made from is one, else as PNG.
Pictures = Literal["auto", "png"]
# The engine that is the process of the run itself.
LOCAL: Final = "local"
Parse = Literal["official", "strict"]
# The parts of a finding that a model is shown.
Show = Literal["text", "image", "both"]
# In which form a model gets a prompt's images (`hybrid/solving/image_forms.py`).
ImageForm = Literal["separate", "concat", "caption", "none"]
# Whether tools return their findings or a control.
ToolOutput = Literal["real", "blank", "shuffled", "oracle"]
# Whether a choice is answered in words, or as the option that the model finds most likely.
AnswerForm = Literal["text", "likelihood"]
# The treatment of questions for which a file of texts has none.
Missing = Literal["refuse", "without"]
# Reasons to refuse a run unless `--allow` names them.
Gate = Literal["overlap", "non-commercial", "blind", "blind-tools", "toolless", "unordered", "partial"]
# Pictures of tools that stay in the dialogue, by the word of `--keep-pictures`.
KEPT: Final[Mapping[str, int]] = {"all": 1_000_000, "latest": 1, "asked": 0}
