"""The words that options accept if they have a fixed set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

# Providers whose server this program starts.
STARTED: Final = ("vllm", "sglang", "llamacpp")
ToolCalling = Literal["native", "text", "auto"]
# Whether a model gets its own earlier thoughts with the conversation.
Thoughts = Literal["keep", "drop"]
Streaming = Literal["auto", "on", "off"]
# Position of a tool's picture in a request: inside the tool message, or in a user message after it. `auto` tests the
# server once.
ToolPictures = Literal["auto", "inside", "beside"]
Backends = Literal["auto", "learned", "classical"]
FLOAT32: Final = "float32"
# Floating-point precision of the tools' networks (`hybrid/serving/precision.py`).
Dtypes = Literal["auto", "float32", "bfloat16", "float16"]
# Format of a stored crop or overlay: `auto` is JPEG if the image it was made from is a JPEG, else PNG.
Pictures = Literal["auto", "png"]
# The engine that uses the process of the run itself.
LOCAL: Final = "local"
Parse = Literal["official", "strict"]
# The parts of a tool output that a model gets.
Show = Literal["text", "image", "both"]
# The form in which a model gets a prompt's images (`hybrid/solving/images.py`).
ImageForm = Literal["separate", "concat", "caption", "none"]
# Whether tools return their real outputs or those of a control condition.
ToolOutput = Literal["real", "blank", "shuffled", "oracle", "paraphrased"]
# Whether a choice is answered in words, or as the option with the highest likelihood.
AnswerForm = Literal["text", "likelihood"]
# Treatment of questions that are missing in a file of texts.
Missing = Literal["refuse", "without"]
# Reasons to stop a run unless `--allow` names them.
Gate = Literal["overlap", "non-commercial", "blind", "blind-tools", "toolless", "unordered", "partial"]
# For each value of `--keep-pictures`, the number of tool pictures that stay in the dialogue.
KEPT: Final[Mapping[str, int]] = {"all": 1_000_000, "latest": 1, "asked": 0}
