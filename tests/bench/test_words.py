"""Tests of the names that `bench.words` counts as odd, and of the places where it finds them."""

from pathlib import Path

from bench import words

SOURCE = """
def told(found, name):
    for one in found:
        name = one
    with open(name) as said, open(name) as file:
        return [whole for whole in file], lambda kept: kept

class Box:
    def _shown(self): ...
    def show(self): ...
"""


def test_names_count_where_they_are_bound_and_functions_by_their_whole_name() -> None:
    counts = words.words_of(SOURCE, "a.py")
    assert sorted(counts.odd) == ["a.py:2 found", "a.py:3 one", "a.py:5 said", "a.py:6 kept", "a.py:6 whole"]
    assert sorted(counts.participles) == ["a.py:2 told()", "a.py:9 _shown()"]
    assert (counts.lines, counts.functions) == (8, 3)
    assert counts.cells == ("8", "625.0", "3", "66.7 %")


def test_a_class_counts_as_repeated_where_two_files_define_it(tmp_path: Path) -> None:
    for name, text in {
        "a.py": "class Box: ...\nclass _Own: ...\n",
        "b.py": "class Box: ...\nclass _Own: ...\n",
    }.items():
        (tmp_path / name).write_text(text)
    assert words.repeated_classes(tmp_path.iterdir(), tmp_path) == {"Box": ["a.py", "b.py"]}
