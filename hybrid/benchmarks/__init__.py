"""One package per benchmark, named as on the command line. `base.py` defines the interface."""
