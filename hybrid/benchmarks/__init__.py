"""One file a benchmark; its stem is the word on the command line. `base.py` holds the seam."""
