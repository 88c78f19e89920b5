"""One vision specialist a file; its stem is the word a model and the command line use."""
