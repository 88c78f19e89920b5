"""Known answers of ocr: a plain word in capitals must be read."""

from __future__ import annotations

from functools import partial

import cv2
import numpy as np

from hybrid.tool import Evidence, KnownAnswer, Posed


def _word(word: str) -> Posed:
    canvas = np.full((300, 480, 3), 245, np.uint8)
    cv2.putText(canvas, word, (40, 170), cv2.FONT_HERSHEY_SIMPLEX, 2.0, (20, 20, 20), 4, cv2.LINE_AA)

    def wrong(found: Evidence) -> str | None:
        read = str(found.data["text"])
        return None if _letters(word) in _letters(read) else f"it read {read[:60]!r}"

    return Posed((canvas,), {}, wrong)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.upper() if letter.isalnum())


CHECKS = tuple(KnownAnswer(f"the word {word}", partial(_word, word)) for word in ("STREET", "27 APRIL"))
