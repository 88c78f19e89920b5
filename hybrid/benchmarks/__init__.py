"""One package per benchmark; its name is the word on the command line. `base.py` has the interface."""
