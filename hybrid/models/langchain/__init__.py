"""Providers that are reached through the chat models of LangChain."""
