"""Helpers shared by the rules of several benchmarks: answers, findings, words of questions, options in words."""
