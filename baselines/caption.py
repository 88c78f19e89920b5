"""The MLLM on its own descriptions: each image is described in a separate call, then the question is asked blind.

    hybrid run blink --solver caption --model openai:gpt-4o

The study "Caption + LLM" of the BLINK paper (section 4.3): what is left of a perception task once it has become words.
"""

from baselines.mllm import Mllm

SOLVER = Mllm(images="caption")
