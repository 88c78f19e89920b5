"""The MLLM without images: shows what the text alone gives away.

hybrid run blink --solver text_only --model openai:gpt-4o
"""

from baselines.mllm import Mllm

SOLVER = Mllm(images="none")
