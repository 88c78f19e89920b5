"""Types, messages, images, coordinates, errors and files that all other packages use; they import no other package."""
