"""The measurement of `ocr`: rendered lines are reproducible, and errors are counted by Levenshtein distance."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import ocr as bench

WORDS = st.text("abc ", max_size=8)


@given(WORDS, WORDS, WORDS)
def test_the_distance_is_a_metric(first: str, second: str, third: str):
    distance = bench.distance
    assert distance(first, second) == distance(second, first)
    assert (distance(first, second) == 0) == (first == second)
    assert distance(first, third) <= distance(first, second) + distance(second, third)
    assert abs(len(first) - len(second)) <= distance(first, second) <= max(len(first), len(second))


@pytest.mark.system
def test_lines_are_the_same_every_time_and_visible():
    for index in range(0, 100, 7):
        text, page = bench.render(index, 1000), bench.render(index, 1000)
        assert np.array_equal(text.pixels, page.pixels)
        assert text.text == page.text
        assert (text.text == "") == (index % bench.EMPTY == bench.EMPTY - 1)
        plain = text.ground == "plain"
        assert not plain or (np.ptp(text.pixels) > 60) == bool(text.text)
    text = [bench.render(index, 1000) for index in range(100)]
    assert {item.face for item in text} == set(bench.FACES)
    assert {entry.ground for entry in text} == set(bench.GROUNDS)
    assert {value.height_px for value in text} == set(bench.HEIGHTS_PX)
    assert not np.array_equal(bench.render(0, 1000).pixels, bench.render(0, 0).pixels)


def test_the_table_counts_lines_and_bins():
    texts = [bench.render(index, 1000) for index in range(bench.EMPTY)]
    reads = [
        bench.Read(item, item.text if place else item.text + "x", 0.97 if place else 0.2)
        for place, item in enumerate(texts)
    ]
    table = bench.lines(reads)
    assert table[0].startswith(f"all        exact {bench.EMPTY - 1}/{bench.EMPTY}")
    right = f"right = {bench.EMPTY - 1}, n = {bench.EMPTY - 1}"
    assert table[-1] == f"  {{confidence = 0.1, right = 0, n = 1}}, {{confidence = 0.95, {right}}}"
    assert any(row.startswith("empty      exact 1/1 (1.000)") and row.endswith("0 characters read") for row in table)
