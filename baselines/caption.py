"""The MLLM on its own descriptions: each image is described in a separate call, then the question is asked blind.

    hybrid run blink --solver caption --model openai:gpt-4o

This is the study "Caption + LLM" of the BLINK paper (section 4.3): how much of a perception task survives as text.
"""

from baselines.mllm import Mllm

SOLVER = Mllm(images="caption")
