"""Providers used through LangChain's chat models."""
