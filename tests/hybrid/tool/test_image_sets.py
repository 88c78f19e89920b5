"""Which collections share images: the published cases, and what holds for every name of the table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.tool.image_sets import CRAWLED, DRAWN_FROM, canonical, crawled, is_known, origins, shared

NAMES = st.sampled_from(sorted(DRAWN_FROM))


@pytest.mark.parametrize(
    ("name", "other", "through"),
    [
        ("VQAv2", "COCO", {"COCO"}),
        ("COCO", "COCO-FreeView", {"COCO"}),
        ("COCO-FreeView", "COCO-Search18", {"COCO", "COCO-Search18"}),
        ("Visual Genome", "TallyQA", {"COCO", "YFCC100M", "Visual Genome"}),
        ("PhraseCut", "VSR", {"COCO"}),
        ("CLIP's image-text pairs", "Visual Genome", {"YFCC100M"}),
        ("LVD-142M", "SPair-71k", {"ImageNet-22k", "ImageNet-1k"}),
        ("ImageNet-1k", "PASCAL3D+", {"ImageNet-1k"}),
        ("RefCOCO", "LVIS", {"COCO"}),
        ("SA-1B", "SA-1B", {"SA-1B"}),
        ("SA-1B", "VCR", set()),
        ("SA-V", "SA-1B", set()),
        ("MegaDepth", "HPatches", set()),
        ("YFCC100M", "COCO", set()),
        ("Objects365", "Visual Genome", set()),
    ],
)
def test_what_two_collections_share(name: str, other: str, through: set[str]) -> None:
    assert shared(name, other) == through
    assert shared(other, name) == through


@given(NAMES)
def test_a_collection_holds_the_origins_of_what_it_takes_from(name: str) -> None:
    parents = DRAWN_FROM[name]
    assert origins(name) == {name}.union(*(origins(parent) for parent in parents))
    assert set(parents) <= set(DRAWN_FROM)
    # Nothing takes images from what takes images from it.
    assert all(name not in origins(parent) for parent in parents)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("coco freeview", "COCO-FreeView"),
        ("COCO_FreeView", "COCO-FreeView"),
        ("DIW (train)", "DIW"),
        ("MS COCO", "COCO"),
        ("COCO 2017", "COCO"),
        ("ImageNet-21K", "ImageNet-22k"),
        ("DreamSim", "NIGHTS"),
        ("VKITTI2", "VKITTI 2"),
        ("COCO 2014", "COCO"),
        ("Open Images V4", "Open Images"),
        ("Open Images V7", "Open Images"),
        ("Google Landmarks v2", "Google Landmarks"),
        ("VG", "Visual Genome"),
        ("VQA 2.0", "VQAv2"),
    ],
)
def test_spellings(written: str, meant: str) -> None:
    assert canonical(written) == meant
    assert is_known(written)
    assert shared(written, meant) == origins(meant)


@pytest.mark.parametrize("name", ["DIWAN", "COCOA", "my photographs", ""])
def test_an_unknown_name_shares_with_itself_only(name: str) -> None:
    assert not is_known(name)
    assert all(not shared(name, known) for known in DRAWN_FROM)
    assert shared(name, name)
    assert not shared(name, "of somebody else")


def test_no_two_names_are_one_spelling() -> None:
    assert [name for name in DRAWN_FROM if canonical(name) != name] == []


def test_what_is_out_of_the_web() -> None:
    assert crawled(("COCO", "WebLI", "somebody's own", "SA-1B")) == ("WebLI",)
    # It is no crawl, and draws on one.
    assert crawled(("Community Forensics",)) == ("Community Forensics",)
    assert crawled(("COCO", "Visual Genome")) == ()
    assert set(DRAWN_FROM) >= CRAWLED
