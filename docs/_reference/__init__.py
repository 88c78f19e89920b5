"""The reference of the site: Markdown pages made from cards, commands and types; one module for each kind of page."""
