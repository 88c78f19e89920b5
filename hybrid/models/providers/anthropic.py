"""`anthropic:MODEL`: models of Anthropic, through LangChain's client."""

from hybrid.models.langchain.opening import open_model

MODEL = open_model
