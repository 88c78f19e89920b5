"""A specialist called from Python, and its finding as a notebook shows it."""
