"""Vision specialists, one per file; the file's stem is the name that a model and the command line use."""
