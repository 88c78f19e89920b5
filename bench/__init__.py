"""Measurements that anyone can run: `uv run python -m bench.NAME`; the docstring of each file describes its output."""
