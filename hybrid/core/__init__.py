"""What every part of hybrid speaks: types, messages, images, coordinates, errors, files. It imports no other part."""
