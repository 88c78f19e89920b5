"""Solvers to compare with, one a file: MLLM alone, specialist alone, chance."""
