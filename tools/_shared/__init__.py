"""Helpers that two or more tools share: arguments, checkpoints, batches, drawing, matching, features."""
