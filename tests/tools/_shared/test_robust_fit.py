"""Estimators that find no model return none, also if OpenCV raises an error."""

import cv2
import numpy as np
import pytest

from tools._shared.robust_fit import fit_model


def test_an_error_of_the_estimator_is_no_model() -> None:
    def fail() -> None:
        raise cv2.error("(-215:Assertion failed) !model.empty()")

    assert fit_model(fail) == (None, None)
    assert fit_model(lambda: (None, np.ones(3))) == (None, None)
    assert fit_model(lambda: (np.eye(3), None)) == (None, None)


def test_a_model_and_its_mask_are_returned_and_other_errors_raised() -> None:
    points = np.random.default_rng(0).uniform(0, 640, (40, 2))
    model, mask = fit_model(cv2.findHomography, points, points + 5, cv2.USAC_MAGSAC, 2.0)
    assert model[:2, 2] == pytest.approx([5, 5], abs=1e-3)
    assert mask.all()
    with pytest.raises(TypeError):
        fit_model(len, 1)
