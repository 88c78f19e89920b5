"""Measurements that anyone can run: `uv run python -m bench.NAME`; each file says what it prints."""
