"""Runs: resolve the configuration, ask every question, save the answers; also estimates, data and permissions."""
