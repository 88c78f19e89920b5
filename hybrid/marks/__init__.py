"""Letters, points and boxes on a picture: `drawing` draws them, `finding` detects them."""
