"""A specialist called from Python, and its output as a notebook shows it."""
