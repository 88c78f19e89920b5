"""The MLLM without any image: what the text alone gives away.

hybrid run blink --solver text_only --model openai:gpt-4o
"""

from baselines.mllm import Mllm

SOLVER = Mllm(images="none")
