"""Call OpenCV's robust estimators on matches that may determine no model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def fit_model(estimate: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return the model and the mask of its inliers from a function of OpenCV, (None, None) if there is none.

    The estimators raise `cv2.error` for an assertion of their own if the matches, as of a repeated pattern, determine
    no model; that is an outcome and no fault of the request.
    """
    import cv2

    try:
        model, mask = estimate(*args, **options)
    except cv2.error:
        return None, None
    return (None, None) if model is None or mask is None else (model, mask)
