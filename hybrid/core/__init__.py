"""Types, messages, images, coordinates, errors and files that every other package uses; it imports none of them."""
