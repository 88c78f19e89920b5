"""What `bench/random_weights.py` counts."""

from bench.random_weights import Outcome, table


def test_a_row_says_how_often_random_networks_were_refused_and_how_many_answers_they_had() -> None:
    outcomes = [
        Outcome("similarity", 0, True, 0, 8, 7),
        Outcome("similarity", 1, False, 7, 8, 7),
        Outcome("jigsaw", 0, True, 3, 8, 7),
    ]
    assert table(outcomes).rows == (
        ("similarity", "2", "1", "0", "7", "7 of 8", "1"),
        ("jigsaw", "1", "1", "3", "3", "7 of 8", "0"),
    )
