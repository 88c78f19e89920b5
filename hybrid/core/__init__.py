"""Types, messages, images, coordinates, errors and files that all other packages use and that import none of these."""
