"""Letters, points and boxes drawn on a picture: drawn by `drawing`, found again by `finding`."""
