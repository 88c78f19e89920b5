"""`google_genai:MODEL`: models of Google, through LangChain's client."""

from hybrid.models.langchain.opening import open_model

MODEL = open_model
