"""What the functions of `hybrid` do when they are called from Python: tools on images, whole runs."""
