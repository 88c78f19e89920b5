"""The measurement of redrawn marks: on generated pictures, and it tells a reading that is wrong."""

from dataclasses import replace

from bench import mark_styles as bench


def test_generated_pictures_are_the_same_every_time_and_read() -> None:
    (picture,), (again,) = list(bench.generated(1)), list(bench.generated(1))
    assert (picture.pixels == again.pixels).all()
    lines = bench.table([picture], ("radius:10,color:red", "color:gray"))
    assert lines[0] == "1 of 1 pictures can be redrawn; on 1 of these no old mark is seen any more"
    assert [line.split()[:2] for line in lines[1:]] == [["radius:10,color:red", "1/1"], ["color:gray", "1/1"]]


def test_a_mark_in_another_place_is_not_read() -> None:
    (picture,) = bench.generated(1)
    bare = bench.bared(picture)
    assert bare is not None
    first, second = bare.taken.marks
    moved = replace(bare, taken=replace(bare.taken, marks=(replace(first, label="B"), replace(second, label="A"))))
    assert bench.is_read(bare, "radius:8")
    # The letters that are drawn are those that are read: exchanged, each is where the other one was.
    assert bench.is_read(moved, "radius:8")
    assert bench.bared(bench.Marked(bare.taken.pixels, picture.labels)) is None
