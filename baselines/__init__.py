"""Baseline solvers, one per module: MLLM alone, specialist alone, chance."""
