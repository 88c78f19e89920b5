"""Names in questions: counted things, boxed things, relations, numbers."""

from pathlib import Path
from typing import get_args

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.benchmarks.blink.sample import item
from tests.tables import cases
from tools._shared.question_words import NUMBERS, counted_thing, number_in, singular
from tools.localization import boxed_thing
from tools.relation import PHRASES, AskedRelation, asked_relation
from tools.relation.box_relations import RelationName

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=2, max_size=8)


@pytest.mark.parametrize(*cases(__file__, "test_the_singular"))
def test_the_singular(plural: str, expected: str):
    assert singular(plural) == expected


@given(st.text(max_size=30))
def test_the_singular_of_the_singular_is_itself_or_shorter(text: str):
    assert len(singular(singular(text))) <= max(len(singular(text)), 6)


@given(st.text(max_size=80))
def test_any_text_is_read_without_an_error(text: str):
    for read in (counted_thing, boxed_thing, asked_relation, number_in):
        read(text)


@given(WORDS, WORDS, st.sampled_from(sorted(PHRASES)))
def test_every_phrase_is_found_again(first: str, second: str, phrase: str):
    request = asked_relation(f"Is the {first} {phrase} the {second}?\nSelect from the following choices.")
    assert request == AskedRelation(first, PHRASES[phrase], second)
    assert request.relation in get_args(RelationName)


@given(st.integers(0, len(NUMBERS) - 1))
def test_numbers_read_alike_in_digits_and_words(number: int):
    assert number_in(str(number)) == number_in(NUMBERS[number].title()) == number


@pytest.mark.system
def test_generated_questions_are_understood():
    for index in range(3):
        drawn_item = item("Counting", index, 1)
        assert counted_thing(drawn_item.question) == str(drawn_item.facts.name)
        drawn_item = item("Object_Localization", index, 1)
        assert boxed_thing(drawn_item.question) == str(drawn_item.facts.name)
        drawn_item = item("Spatial_Relation", index, 1)
        request = asked_relation(drawn_item.question)
        assert (request.subject, request.reference) == (str(drawn_item.facts.first), str(drawn_item.facts.second))


@pytest.mark.shared_data
@pytest.mark.system
def test_published_relations_are_understood_but_for_four_verbs(shared_data: Path):
    path = shared_data / "blink" / "Spatial_Relation" / "val-00000-of-00001.parquet"
    rows = pq.read_table(path, columns=["question", "prompt"]).to_pylist()
    unread = [row["question"] for row in rows if asked_relation(row["prompt"]) is None]
    assert len(unread) <= 12
    assert all(any(word in text for word in ("facing", "consist of", "part of", "opposite to")) for text in unread)
