"""LangGraph solvers, one per module: an MLLM together with specialists."""
