"""Models whose weights are loaded into this process (`hf:`)."""
