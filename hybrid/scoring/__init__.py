"""Scoring: from saved answers to verdicts, metrics, comparisons and calibrations."""
