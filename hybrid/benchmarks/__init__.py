"""One package a benchmark; its name is the word on the command line. `base.py` holds the seam."""
