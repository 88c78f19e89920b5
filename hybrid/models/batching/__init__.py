"""Collects requests and sends them in rounds as batches of a provider, at half the price (`batches.py`)."""
