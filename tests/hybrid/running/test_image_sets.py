"""Which collections share images: the published cases, and properties of every name in the table."""

from hypothesis import given
from hypothesis import strategies as st

from hybrid.running.permissions import DRAWN_FROM, origins

NAMES = st.sampled_from(sorted(DRAWN_FROM))


@given(NAMES)
def test_a_collection_holds_the_origins_of_what_it_takes_from(name: str) -> None:
    parents = DRAWN_FROM[name]
    assert origins(name) == {name}.union(*(origins(parent) for parent in parents))
    assert set(parents) <= set(DRAWN_FROM)
    # If a collection takes images from another, the other takes none from it.
    assert all(name not in origins(parent) for parent in parents)
