"""`ollama:MODEL`: models of Ollama, by LangChain's client."""

from hybrid.models.langchain.opening import open_model

MODEL = open_model
