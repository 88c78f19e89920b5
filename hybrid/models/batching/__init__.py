"""Requests are collected and sent in rounds as batches of a provider, at half the price (`batches.py`)."""
