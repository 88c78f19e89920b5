"""Helpers that two or more benchmarks share."""
