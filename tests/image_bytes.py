"""Pictures as the bytes of a file."""

import io
from typing import Any

from PIL import Image


def saved(picture: Image.Image, kind: str = "PNG", **options: Any) -> bytes:
    """Return the bytes of an image file, with options of Pillow's `save`."""
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()
