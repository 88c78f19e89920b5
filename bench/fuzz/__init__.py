"""Fuzz targets and their seeds; `python -m bench.fuzz` runs them."""
