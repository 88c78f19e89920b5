"""Helpers shared by the rules of several benchmarks: options in words."""
