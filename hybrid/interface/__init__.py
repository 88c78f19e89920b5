"""Runs specialists from Python, and shows their output in a notebook."""
