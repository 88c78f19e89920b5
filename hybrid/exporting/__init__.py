"""Exports of runs to other tools' formats: `hybrid export RUN/SOLVER --to FORMAT -o PATH`. One module per format.

Each module has `EXPORTER`, an instance of a subclass of `hybrid.exporting.base.Exporter`, and is found by its name;
plug-ins add formats (`hybrid/plugins/discovery.py`).
"""
