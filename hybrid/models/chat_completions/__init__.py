"""Hybrid's own client of chat completions: the API of OpenAI and of all compatible servers."""
