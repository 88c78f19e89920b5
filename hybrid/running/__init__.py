"""Loop 1: resolve a run, ask its questions, append the answers; estimate, configuration, data, permissions."""
