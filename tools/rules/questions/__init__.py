"""stub"""
RULES = {}
