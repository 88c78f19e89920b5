"""The reference of the site: Markdown pages made from cards, commands and types; a file for each kind of page."""
