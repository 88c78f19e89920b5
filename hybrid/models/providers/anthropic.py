"""`anthropic:MODEL`: models of Anthropic, by LangChain's client."""

from hybrid.models.providers._langchain import open_model

MODEL = open_model
