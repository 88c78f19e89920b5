"""Loop 2: from answers on disk to verdicts, metrics, comparisons and calibrations."""
