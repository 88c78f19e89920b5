"""LangGraph solvers, one a file: an MLLM together with specialists."""
