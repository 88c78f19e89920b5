"""Runs as the files of other tools: `hybrid export RUN/SOLVER --to FORMAT -o PATH`. One file a format next to this one.

Each holds `EXPORTER`, an object of a subclass of `hybrid.exporting.base.Exporter`, and is found by its name; plug-ins
add formats (`hybrid/plugins/registry.py`).
"""
