"""Tests of the counts in `bench/random_weights.py`."""

from bench.random_weights import Outcome, table


def test_a_row_says_how_often_random_networks_were_right_by_chance() -> None:
    outcomes = [Outcome("similarity", 0, 0, 8, 7), Outcome("similarity", 1, 7, 8, 7), Outcome("jigsaw", 0, 3, 8, 7)]
    assert table(outcomes).rows == (
        ("similarity", "2", "0", "7", "7 of 8", "1"),
        ("jigsaw", "1", "3", "3", "7 of 8", "0"),
    )
