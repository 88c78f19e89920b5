"""Requests that are collected and sent as batches of a provider, in rounds, at half the price (`batches.py`)."""
