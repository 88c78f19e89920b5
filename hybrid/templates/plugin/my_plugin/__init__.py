"""Plug-ins of hybrid."""
