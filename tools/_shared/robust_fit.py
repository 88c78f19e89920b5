"""Call OpenCV's robust estimators on matches that may determine no model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def fit_model(estimate: Callable[..., Any], *args: Any, **options: Any) -> tuple[Any, Any]:
    """Return the model and the inlier mask from an estimator of OpenCV; (None, None) if it finds no model.

    If the matches determine no model, as in a repeated pattern, an internal assertion of the estimator may fail with
    `cv2.error`. That is an outcome, not a fault of the request.
    """
    import cv2

    try:
        model, mask = estimate(*args, **options)
    except cv2.error:
        return None, None
    return (None, None) if model is None or mask is None else (model, mask)
