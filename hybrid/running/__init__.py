"""Asks every question of a run: resolves it, appends the answers; estimates, data, permissions."""
