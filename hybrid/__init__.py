"""`hybrid`: does a multimodal LLM gain from vision specialists? Run `hybrid --help`."""

__version__ = "0.1.0"
