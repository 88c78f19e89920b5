"""One picture for all: what a server decodes of what it is sent is what the tools are given, pixel by pixel."""

import base64
import hashlib
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from hybrid.errors import DataError
from hybrid.images import ImageStore
from hybrid.models.images import ImageEncoder, ImageRules
from tests.hybrid.odd_pictures import ODD, Odd, seen


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: odd.name)
def test_a_server_and_the_tools_are_shown_one_picture(tmp_path: Path, odd: Odd) -> None:
    store, data = ImageStore(tmp_path), odd.data()
    if odd.seen == "nothing":
        with pytest.raises(DataError, match="row 7"):
            store.put(data, "row 7")
        return
    image = store.put(data, "row 7")
    sent, text = ImageEncoder(store, ImageRules()).encoded(image)
    file = base64.b64decode(text)
    with Image.open(io.BytesIO(file)) as picture:
        assert picture.format in ("JPEG", "PNG", "MPO")
        assert picture.mode in ("RGB", "L")
        server = np.asarray(picture.convert("RGB"))
    assert np.array_equal(server, store.pixels(image))
    assert server.shape == (image.height, image.width, 3) == (sent.height, sent.width, 3)
    assert (image.sha256 == hashlib.sha256(data).hexdigest()) is odd.plain
    if (wanted := seen(odd.seen)) is not None:
        assert np.abs(server - wanted).mean() <= odd.off
    # Again, and to another process, it is the same one; nothing is made twice.
    made = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert ImageStore(tmp_path).put(data, "row 8") == image
    assert {path: path.stat().st_mtime_ns for path in made} == made


def test_a_made_picture_that_was_damaged_is_made_again(tmp_path: Path) -> None:
    store = ImageStore(tmp_path)
    data = next(odd for odd in ODD if odd.name == "PNG LA").data()
    image = store.put(data, "x")
    sound = store.read(image)
    store.path(image.sha256).write_bytes(b"damaged")
    assert store.put(data, "x") == image
    assert store.read(image) == sound
    store.path(hashlib.sha256(data).hexdigest()).with_suffix(".made").write_bytes(b"{}")
    assert store.put(data, "x") == image
