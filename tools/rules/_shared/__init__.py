"""What the rules of two or more benchmarks share: testimonies, findings read, words of questions, options in words."""
