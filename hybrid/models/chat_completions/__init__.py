"""Our own client of chat completions: the API of OpenAI and of every server that speaks it."""
