"""`ollama:MODEL`: models of Ollama, by LangChain's client."""

from hybrid.models.providers._langchain import open_model

MODEL = open_model
